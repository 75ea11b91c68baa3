"""A naive simulator, written from the pages of the policies and not from the program.

It keeps no order and no index: whenever something happens it looks at every job and every node again.
tests/e2e/test_judge.py compares what it says of each job with what 'berth sim' says.
"""
import math
import struct

NS = 1_000_000_000
WAITING, PLACED, LOADING, RUNNING, STOPPING, DONE, REJECTED = range(7)


class RandomChoice(Exception):
    """The policy would draw at random here: nobody can judge that."""


class Job:
    def __init__(self, number, **given):
        self.id = number
        self.submit = self.gpus = self.work = 0
        self.trial = False
        self.grace = self.pause = self.load = self.ckpt = 0
        self.cpus = self.mem = 0
        self.types = None  # names of those allowed; None: all
        self.kinds = None  # those of them that can hold it
        self.__dict__.update(given)
        self.state = None
        self.steps = 0.0  # seconds of work on a type of speed 1 that are done
        self.attempt_steps = 0.0  # of them done before the attempt
        self.lost_at = None  # STOPPING: steps when it was told; None: it was loading
        self.is_clean = True  # STOPPING: it saves in time
        self.anchor = 0  # RUNNING: when steps were counted last
        self.rate = 1.0
        self.start = 0  # of the attempt
        self.event = None  # when it has loaded, made its steps or stopped
        self.seats = {}  # node: [mask of GPUs, CPUs, memory]
        self.pending = {}  # victim: the part of the seats that it still holds
        self.preemptions = self.failures = 0
        self.first_start = self.end = None
        self.held_ns = 0  # in attempts that are over
        self.forgiven = 0
        self.waits_since = 0

    def holds(self):
        return self.state in (LOADING, RUNNING, STOPPING)

    def is_candidate(self):
        return self.state in (LOADING, RUNNING)


class Node:
    def __init__(self, gpus, cpus, mem, kind):
        self.gpus = gpus
        self.cpus, self.mem = cpus * 1000, mem * 1024  # thousandths, MiB
        self.kind = kind
        self.up = True
        self.free = [(1 << gpus) - 1, self.cpus, self.mem]


def bits(mask):
    return bin(mask).count("1")


def lowest(mask, count):
    """The lowest so many bits of a mask."""
    taken = 0
    while count:
        bit = mask & -mask
        taken |= bit
        mask ^= bit
        count -= 1
    return taken


class Plan:
    """What one decision changes.  Trying something means to copy the plan first."""

    def __init__(self, sim):
        self.sim = sim
        self.free = [list(node.free) for node in sim.nodes]
        self.vacated = [{} for _ in sim.nodes]  # by node: victim: [mask, CPUs, memory] nobody got
        self.grants = {}  # job: (seats, pending)
        self.revoked = []

    def copy(self):
        other = Plan.__new__(Plan)
        other.sim = self.sim
        other.free = [list(f) for f in self.free]
        other.vacated = [{v: list(r) for v, r in by.items()} for by in self.vacated]
        other.grants = dict(self.grants)
        other.revoked = list(self.revoked)
        return other

    def become(self, other):
        self.__dict__.update(other.__dict__)

    def revoke(self, victim):
        self.revoked.append(victim)
        for n, share in victim.seats.items():
            if self.sim.nodes[n].up:
                self.vacated[n][victim] = list(share)

    def room(self, n, vacancies):
        """GPUs, CPUs and memory that node n could give."""
        gpus, cpus, mem = bits(self.free[n][0]), self.free[n][1], self.free[n][2]
        if vacancies:
            for mask, c, m in self.vacated[n].values():
                gpus, cpus, mem = gpus + bits(mask), cpus + c, mem + m
        return gpus, cpus, mem

    def grant(self, job, avoid=(), free_only=False):
        """The whole gang or nothing.  Free resources first, then with those vacated."""
        for vacancies in (False,) if free_only else (False, True):
            for kind in self.sim.kinds_of(job):
                shares = self.place(job, kind, vacancies, avoid)
                if shares:
                    self.take(job, shares)
                    return True
        return False

    def fits(self, job, n, gpus, vacancies):
        has = self.room(n, vacancies)
        return all(h >= w for h, w in zip(has, self.sim.part_of(job, gpus)))

    def place(self, job, kind, vacancies, avoid, all_nodes=False):
        """{node: GPUs}, or None."""
        nodes = [n for n, node in enumerate(self.sim.nodes)
                 if (node.up or all_nodes) and node.kind == kind and n not in avoid]
        largest = max(node.gpus for node in self.sim.nodes if node.kind == kind)
        if job.gpus <= largest:
            fitting = [(self.room(n, vacancies)[0], n) for n in nodes
                       if self.fits(job, n, job.gpus, vacancies) and (not vacancies or self.vacated[n])]
            return {min(fitting)[1]: job.gpus} if fitting else None
        parts = [largest] * (job.gpus // largest) + ([job.gpus % largest] if job.gpus % largest else [])
        shares = {}
        for gpus in parts:
            for vacated in (False, True) if vacancies else (False,):
                fitting = [(self.room(n, vacated)[0], n) for n in nodes
                           if n not in shares and self.fits(job, n, gpus, vacated)]
                if fitting:
                    shares[min(fitting)[1]] = gpus
                    break
            else:
                return None
        return shares

    def take(self, job, shares):
        seats, pending = {}, {}
        for n, count in shares.items():
            gpus, cpus, mem = self.sim.part_of(job, count)
            seats[n] = [0, cpus, mem]
            if not self.fits(job, n, count, False):
                for victim in reversed(self.vacated[n]):  # the last revoked first
                    rest = self.vacated[n][victim]
                    part = [lowest(rest[0], min(gpus, bits(rest[0]))), min(cpus, rest[1]), min(mem, rest[2])]
                    if part == [0, 0, 0]:
                        continue
                    pending.setdefault(victim, {})[n] = part
                    gpus, cpus, mem = gpus - bits(part[0]), cpus - part[1], mem - part[2]
                    self.vacated[n][victim] = [rest[0] & ~part[0], rest[1] - part[1], rest[2] - part[2]]
                    seats[n][0] |= part[0]
            mask = lowest(self.free[n][0], gpus)
            self.free[n] = [self.free[n][0] & ~mask, self.free[n][1] - cpus, self.free[n][2] - mem]
            seats[n][0] |= mask
        self.grants[job] = (seats, pending)

    def preempt_for(self, job, candidates):
        """Revoke as few as are in the way, in this order of preference, and grant; returns the victims."""
        attempt = self.copy()
        walked = []
        for victim in candidates:
            if victim in self.revoked:
                continue
            attempt.revoke(victim)
            walked.append(victim)
            if attempt.copy().grant(job):
                break
        else:
            return None
        victims = self.spare_on_one_node(job, attempt, walked) or walked
        while True:
            final = self.copy()
            for victim in victims:
                final.revoke(victim)
            if not final.grant(job):
                return None
            pending = final.grants[job][1]
            if all(victim in pending for victim in victims):
                self.become(final)
                return victims
            victims = [victim for victim in victims if victim in pending]

    def spare_on_one_node(self, job, attempt, walked):
        """Victims on the node of the last candidate that can hold the job; of several, that with the fewest.
        The least preferred are spared first."""
        best = None
        for n in walked[-1].seats:
            kind = self.sim.nodes[n].kind
            if kind not in self.sim.kinds_of(job) or not self.sim.is_on_one_node(job, kind):
                continue
            if not attempt.fits(job, n, job.gpus, True):
                continue
            room = attempt.room(n, True)
            need = self.sim.part_of(job, job.gpus)
            keep = []
            for victim in reversed([v for v in walked if n in v.seats]):
                share = victim.seats[n]
                without = [room[0] - bits(share[0]), room[1] - share[1], room[2] - share[2]]
                if all(h >= w for h, w in zip(without, need)):
                    room = without
                else:
                    keep.insert(0, victim)
            if best is None or len(keep) < len(best):
                best = keep
        return best


class Sim:
    def __init__(self, nodes, jobs, policy, settings=None, speeds=None, faults=()):
        self.nodes = nodes
        self.jobs = jobs
        self.speeds = speeds or {node.kind: 1.0 for node in nodes}
        self.settings = settings or {}
        self.faults = sorted(faults)  # (time, node, up)
        self.decide = getattr(self, "decide_" + policy.replace("-", "_"))
        self.wakes = getattr(self, "wakes_" + policy.replace("-", "_"), lambda: [])
        self.now = 0
        self.trace = None
        self.reservation = None  # fifo-backfill
        self.again = False  # something was changed: look again, until nothing is
        self.queue_limits = self.limits()  # las

    # What a job needs.

    def kinds_of(self, job):
        """The types it may use and that could hold it, the fastest first."""
        if job.kinds is None:
            empty = Plan(self)
            for n, node in enumerate(self.nodes):
                empty.free[n] = [(1 << node.gpus) - 1, node.cpus, node.mem]
            kinds = [k for k in self.speeds if (job.types is None or k in job.types)
                     and empty.place(job, k, False, (), all_nodes=True)]
            job.kinds = sorted(kinds, key=lambda k: -self.speeds[k])
        return job.kinds

    def part_of(self, job, gpus):
        """GPUs, thousandths of CPUs and MiB for so many of its GPUs, rounded up."""
        return gpus, -(-job.cpus * gpus // job.gpus), -(-job.mem * gpus // job.gpus)

    def is_on_one_node(self, job, kind):
        return job.gpus <= max(node.gpus for node in self.nodes if node.kind == kind)

    # Progress.

    def steps_now(self, job):
        if job.state == RUNNING:
            return job.steps + (self.now - job.anchor) * 1e-9 * job.rate
        return job.steps

    def remaining_ns(self, job):
        """Time that the rest takes on the fastest type, loading not counted.  On a slower type it is
        taken for shorter than it is while it runs."""
        left = round((job.work / 1e9 - job.steps) / self.speeds[self.kinds_of(job)[0]] * 1e9)
        if job.state == RUNNING:
            left -= self.now - job.anchor
        return left

    def expected_end(self, job):
        """When it is done if it runs on."""
        if job.state == RUNNING:
            return job.event
        rest = round((job.work / 1e9 - job.steps) / job.rate * 1e9)
        if job.state == LOADING:
            return job.event + rest
        return self.now + job.load + rest

    def held(self, job):
        """Time for which it has had GPUs."""
        return job.held_ns + (self.now - job.start if job.holds() else 0)

    # What happens.

    def begin(self, job):
        job.state = LOADING
        job.start = self.now
        kind = self.nodes[next(iter(job.seats))].kind
        job.rate = self.speeds[kind]
        job.event = self.now + job.load
        if job.first_start is None:
            job.first_start = self.now
        self.log("started", job)
        if job.load == 0:
            self.loaded(job)

    def loaded(self, job):
        job.state = RUNNING
        job.anchor = self.now
        job.attempt_steps = job.steps
        job.event = self.now + round((job.work / 1e9 - job.steps) / job.rate * 1e9)

    def lose_steps(self, job, steps):
        """It is killed after so many steps: its last checkpoint is what it keeps."""
        every = job.ckpt / 1e9 * job.rate  # in steps, from the first one of the attempt
        saved = math.floor((steps - job.attempt_steps) / every) * every if every else 0
        job.steps = job.attempt_steps + saved

    def tell_to_stop(self, job):
        job.preemptions += 1
        self.log("recalled", job)
        job.lost_at, job.is_clean = None, True
        if job.state == LOADING:
            job.event = self.now
        else:
            job.lost_at = job.steps = self.steps_now(job)
            job.is_clean = job.pause <= job.grace
            job.event = self.now + min(job.pause, job.grace)
        job.state = STOPPING

    def release(self, job):
        """Give its seats back, less what is pending for others."""
        job.held_ns += self.now - job.start
        for n, share in job.seats.items():
            give = list(share)
            for other in self.jobs:
                if other.state == PLACED and job in other.pending and n in other.pending[job]:
                    part = other.pending[job][n]
                    give = [give[0] & ~part[0], give[1] - part[1], give[2] - part[2]]
            free = self.nodes[n].free
            self.nodes[n].free = [free[0] | give[0], free[1] + give[1], free[2] + give[2]]
        job.seats = {}
        for other in self.jobs:
            if other.state == PLACED and job in other.pending:
                del other.pending[job]

    def start_placed(self):
        for other in self.jobs:
            if other.state == PLACED and not other.pending:
                self.begin(other)

    def back_to_queue(self, job):
        job.state = WAITING
        job.waits_since = self.now

    def drop_pending(self, job):
        for n, share in job.seats.items():
            give = list(share)
            for parts in job.pending.values():
                if n in parts:
                    give = [give[0] & ~parts[n][0], give[1] - parts[n][1], give[2] - parts[n][2]]
            free = self.nodes[n].free
            self.nodes[n].free = [free[0] | give[0], free[1] + give[1], free[2] + give[2]]
        job.seats, job.pending = {}, {}
        self.back_to_queue(job)

    def node_changes(self, n, up):
        self.nodes[n].up = up
        self.reservation = None
        self.log("node_up" if up else "node_down", n)
        if up:
            return
        for job in self.jobs:
            if n not in job.seats:
                continue
            self.log("lost", job)
            job.failures += 1
            if job.state == PLACED:
                self.drop_pending(job)
                continue
            if job.state == RUNNING:
                self.lose_steps(job, self.steps_now(job))
            elif job.state == STOPPING and job.lost_at is not None:
                self.lose_steps(job, job.lost_at)
            self.release(job)
            self.back_to_queue(job)

    def apply_events(self):
        """All that happens now; false if that is nothing."""
        happened = False
        for job in self.jobs:
            if job.state is None and job.submit == self.now:
                job.state = WAITING if self.kinds_of(job) else REJECTED
                job.waits_since = self.now
                happened = True
            elif job.state == LOADING and job.event == self.now:
                self.loaded(job)
                happened = True
        while self.faults and self.faults[0][0] == self.now:
            _, n, up = self.faults.pop(0)
            self.node_changes(n, up)
            happened = True
        for job in self.jobs:
            if job.state == RUNNING and job.event == self.now:
                self.release(job)
                job.state = DONE
                job.end = self.now
                self.log("finished", job)
                happened = True
            elif job.state == STOPPING and job.event == self.now:
                if not job.is_clean:
                    self.lose_steps(job, job.lost_at)
                self.release(job)
                self.back_to_queue(job)
                self.log("stopped", job)
                happened = True
        self.start_placed()
        return happened

    def apply_plan(self, plan):
        for victim in plan.revoked:
            self.tell_to_stop(victim)
        for n, node in enumerate(self.nodes):
            node.free = list(plan.free[n])
        for job, (seats, pending) in plan.grants.items():
            job.seats, job.pending = seats, pending
            job.state = PLACED
            self.log("placed", job)
        self.start_placed()

    def log(self, word, what):
        if self.trace is not None:
            self.trace.append(f"{self.now / 1e9:12.3f}  {word} {what.id if isinstance(what, Job) else what}"
                              + (f"  {[(n, bin(s[0])) for n, s in what.seats.items()]}"
                                 f" {[v.id for v in what.pending]}"
                                 if isinstance(what, Job) and what.seats else ""))

    def next_time(self):
        if self.again:
            return self.now
        times = [j.submit for j in self.jobs if j.state is None]
        times += [j.event for j in self.jobs if j.state in (LOADING, RUNNING, STOPPING)]
        times += [t for t in self.wakes() if t > self.now]
        if not times and all(j.state in (DONE, REJECTED) for j in self.jobs):
            return None
        times += [f[0] for f in self.faults[:1]]
        return min(times) if times else None

    def is_stuck(self):
        """Some job waits, and nothing more will happen."""
        return any(job.state not in (DONE, REJECTED) for job in self.jobs)

    def run(self):
        steps = 0
        while (at := self.next_time()) is not None:
            steps += 1
            if steps > 200000:
                raise RuntimeError("it does not come to its end")
            woken = self.again or at in self.wakes()
            self.now = at
            if self.apply_events() or woken:
                plan = Plan(self)
                self.decide(plan)
                self.apply_plan(plan)
                self.again = bool(plan.grants or plan.revoked)

    # The policies.

    def waiting(self, order):
        return sorted((j for j in self.jobs if j.state == WAITING), key=order)

    @staticmethod
    def by_submission(job):
        return job.submit, job.id

    def decide_fifo(self, plan):
        for job in self.waiting(self.by_submission):
            if not plan.grant(job):
                return

    def decide_sjf(self, plan):
        for job in self.waiting(lambda j: (self.remaining_ns(j), j.id)):
            plan.grant(job)

    def decide_srtf(self, plan):
        for job in self.waiting(lambda j: (self.remaining_ns(j), j.id)):
            if plan.grant(job):
                continue
            longer = [j for j in self.jobs if j.is_candidate() and self.remaining_ns(j) > self.remaining_ns(job)]
            plan.preempt_for(job, sorted(longer, key=lambda j: (-self.remaining_ns(j), -j.id)))

    def decide_fifo_backfill(self, plan):
        queue = self.waiting(self.by_submission)
        first = queue[0] if queue else None
        while queue and plan.grant(queue[0]):
            queue.pop(0)
        if len(queue) < 2:
            return
        head = queue.pop(0)
        if head is not first:
            return  # those just granted have to start first
        if not any(bits(f[0]) for f, node in zip(plan.free, self.nodes) if node.up):
            return
        if not self.reservation or self.reservation[0] is not head:
            self.reservation = (head, *self.reserve(head, plan))
        _, shadow, nodes = self.reservation
        for job in queue:
            in_time = shadow is None or self.now + job.load + self.slowest_ns(job) <= shadow
            plan.grant(job, avoid=() if in_time else nodes)

    def slowest_ns(self, job):
        rate = min(self.speeds[k] for k in self.kinds_of(job))
        return round((job.work / 1e9 - job.steps) / rate * 1e9)

    def reserve(self, head, plan):
        """When and where the head will fit: running jobs are revoked in the order of their ends."""
        future = plan.copy()
        ending = sorted((j for j in self.jobs if j.is_candidate()), key=lambda j: (self.expected_end(j), j.id))
        victims = future.preempt_for(head, ending)
        if victims is None:
            return None, set()
        return max(self.expected_end(j) for j in victims), set(future.grants[head][0])

    def service(self, job):
        return job.gpus * self.held(job) - job.forgiven

    def limits(self):
        """Service at which each queue but the last ends."""
        quantum, growth = self.settings.get("quantum", 300 * NS), self.settings.get("growth", 2)
        return [int(quantum * growth ** n) for n in range(self.settings.get("queues", 12) - 1)]

    def queue_of(self, job):
        service = self.service(job)
        queue = 0
        for limit in self.queue_limits:
            if service < limit:
                break
            queue += 1
        return queue

    def promotion(self, job):
        """When a waiting job is put back into the first queue, or None."""
        times = self.settings.get("promote", 0)
        if not times or job.state != WAITING or not self.queue_of(job):
            return None
        return job.waits_since + int(times * job.held_ns)

    def wakes_las(self):
        times = [self.promotion(job) for job in self.jobs]
        for job in self.jobs:
            if job.is_candidate():
                service = self.service(job)
                times += [self.now - (service - limit) // job.gpus for limit in self.queue_limits]
        return [t for t in times if t is not None]

    def decide_las(self, plan):
        for job in self.jobs:
            at = self.promotion(job)
            if at is not None and at <= self.now:
                job.forgiven = job.gpus * job.held_ns
        queues = {job: self.queue_of(job) for job in self.jobs if job.state is not None}
        for job in self.waiting(lambda j: (queues[j], *self.by_submission(j))):
            if plan.grant(job):
                continue
            later = [j for j in self.jobs if j.is_candidate() and queues[j] > queues[job]]
            latest = sorted(later, key=lambda j: (-queues[j], -(j.start // 16), -j.id))
            plan.preempt_for(job, latest)

    def decide_trial(self, plan, make_room):
        looking = False
        for job in self.waiting(self.by_submission):
            if job.trial and not plan.grant(job) and not make_room(plan, job):
                looking = True
        if looking:
            return
        for job in self.waiting(self.by_submission):
            if not job.trial and not plan.grant(job, free_only=True):
                return

    def best_effort(self, plan):
        cap = self.settings.get("max_preemptions", 0)
        return [j for j in self.jobs if j.is_candidate() and not j.trial and j not in plan.revoked
                and not (cap and j.preemptions >= cap)]

    def decide_lrtp(self, plan):
        def make_room(plan, job):
            longest = sorted(self.best_effort(plan), key=lambda j: (-self.expected_end(j), j.id))
            if self.settings.get("spare"):
                return plan.preempt_for(job, longest)
            tried = plan.copy()
            for victim in longest:
                tried.revoke(victim)
                if tried.grant(job):
                    plan.become(tried)
                    return True
            return False
        self.decide_trial(plan, make_room)

    def decide_fitgpp(self, plan):
        self.settings.setdefault("max_preemptions", 1)
        running = [j for j in self.jobs if j.is_candidate() and not j.trial]

        def size(job):
            node = self.nodes[next(iter(job.seats))]
            return math.sqrt(sum((d / c) ** 2 for d, c in
                                 ((job.gpus, node.gpus), (job.cpus, node.cpus), (job.mem, node.mem)) if c))

        sizes = max((size(j) for j in running), default=0)
        graces = max((j.grace for j in running), default=0)

        def score(job):
            value = (size(job) / sizes if sizes else 0)
            value += self.settings.get("s", 4.0) * (job.grace / graces if graces else 0)
            return struct.unpack("f", struct.pack("f", value))[0]

        def make_room(plan, job):
            eligible = sorted(self.best_effort(plan), key=lambda j: (score(j), j.id))
            if not any(self.is_on_one_node(job, kind) for kind in self.speeds
                       if job.types is None or kind in job.types):
                return plan.preempt_for(job, eligible)
            for victim in eligible:
                tried = plan.copy()
                tried.revoke(victim)
                if tried.grant(job):
                    plan.become(tried)
                    return True
            tried = plan.copy()
            for victim in eligible:
                tried.revoke(victim)
            if tried.grant(job):
                raise RandomChoice
            return False
        self.decide_trial(plan, make_room)
