"""jpas, end to end: jobs in different stages of learning exchange real packets, berthd orders
them by the losses they report, berth-flowd marks them, queues with levels do the rest.

Six jobs come one after the other; each is a ring over four hosts and replays the losses of a
real training.  Two networks run side by side, one with jpas and one without levels.  What is
measured is how long jobs take to 90 % of their way, and 'berth sim' says what to expect.
"""
import contextlib
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
import unittest

import net_lab
from curves import families, real
from live import Daemon
from net_lab import FLOWD, RING, Lab
from support import BERTH, DATA

SOAK = os.environ.get("BERTH_SOAK")
RATE = 100e6 # of a link, bits per second
PAYLOAD = 1448 / 1514
STEPS = 40
# With the network to itself a step takes a little more than a second: each is reported.
COMPUTE_S, SEND_S = 0.6, 0.5
# Every level that is busy has 5 % of a link for itself, which a simulation has not: with few
# levels that is little.
FLOW = "jpas,period=1s,levels=3"
HOSTS = ("h1", "h2", "h3", "h4")
# Gradients of a step: a ring of four sends 2 (4-1)/4 of them over each link.
BYTES = int(SEND_S * RATE / 8 * PAYLOAD / 1.5)
FILE = """name: lab
types:
  - {{ name: v100 }}
oversubscription: 2
nodes:
  - {{ count: 4, type: v100, gpus: 8, cpus: 64, mem_gib: 512, nodes_per_rack: 2, link_gbps: {} }}
"""


def steps_to_90(losses):
    return next(k for k, loss in enumerate(losses)
                if losses[0] - loss >= 0.9 * (losses[0] - losses[-1]))


def thinned(losses):
    return [losses[round(k * (len(losses) - 1) / STEPS)] for k in range(STEPS + 1)]


def trainings(count, seed):
    """Losses of that many, in some order; people wait for the first part of each."""
    found = [thinned(c) for c in (real(40) if DATA else [])]
    found = [c for c in found if 0.12 * STEPS <= steps_to_90(c) <= 0.35 * STEPS]
    if len(found) < count:
        found = [thinned(c) for c in families(count + 10)[-count:]]
    return random.Random(seed).sample(found, count)


def arrivals(count, gap_s, seed):
    rng, at, list_s = random.Random(1000 + seed), 0.0, []
    for _ in range(count):
        list_s.append(round(at, 2))
        at += gap_s * rng.uniform(0.7, 1.3)
    return list_s


class Network:
    """Hosts, a berthd for them, and an agent on each where packets are to be marked."""

    def __init__(self, flow):
        self.lab = Lab(f"{RATE / 1e6:.0f}mbit")
        self.daemon = Daemon("--flow", flow, gpus="v100:8").start()
        self.agents = []
        self.jobs = []
        for host in HOSTS if flow != "fair" else ():
            agent = self.lab.start(host, FLOWD, "--server", self.daemon.socket, "--host", host,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.agents.append(agent)
            line = agent.stdout.readline()
            if " ready: " not in line:
                raise AssertionError(line)

    def close(self):
        for agent in self.agents:
            agent.terminate()
            agent.wait(10)
            agent.stdout.close()
        self.daemon.wipe()
        self.lab.down()

    def submit(self, losses):
        """A job with a rank on each host; the first one says how far it is."""
        number = len(self.jobs)
        name = os.path.join(self.daemon.dir, f"losses{number}")
        with open(name, "w", encoding="ascii") as file:
            file.writelines(f"{loss:.9g}\n" for loss in losses)
        ranks = [f"nsenter --net=/run/netns/{self.lab.namespace(host)} {RING} --rank {rank} "
                 f"--world 4 --port {7000 + number} --next 10.77.0.{(rank + 1) % 4 + 1} "
                 f"--mib {BYTES / 2 ** 20:.6f} --compute-ms {COMPUTE_S * 1e3} "
                 f"--iterations {STEPS}" for rank, host in enumerate(HOSTS)]
        script = " & ".join(ranks[1:]) + f" & exec {ranks[0]} --losses {name}"
        self.jobs.append((self.daemon.sh(script), time.time(), losses))

    def iterations(self, ident):
        """Milliseconds that each took so far."""
        status, text = self.daemon.ask("GET", f"/v1/jobs/{ident}/log")
        if status != 200: # it is about to start
            return []
        return [float(line.split()[1]) for line in text.splitlines() if len(line.split()) == 2]

    def times(self):
        """Seconds from its submission until each has 90 % of its way behind it, or None."""
        found = []
        for ident, submitted, losses in self.jobs:
            done, need = self.iterations(ident), steps_to_90(losses)
            if len(done) < need:
                found.append(None)
                continue
            begun = self.daemon.job(ident)["start"] - submitted
            found.append(begun + sum(done[:need]) / 1e3)
        return found


def predict(jobs, flow, seed):
    """Mean time to 90 %, as simulated."""
    with tempfile.TemporaryDirectory(prefix="berth sim ") as folder:
        cluster, workload = os.path.join(folder, "c.yaml"), os.path.join(folder, "j.csv")
        with open(cluster, "w", encoding="ascii") as file:
            file.write(FILE.format(RATE / 1e9))
        with open(workload, "w", encoding="ascii") as file:
            file.write("#berth-jobs 1\n"
                       "submit_s,gpus,nodes,steps,step_s,bytes_per_step,sync,curve\n")
            for at, losses in jobs:
                file.write(f"{at},4,4,{STEPS},{COMPUTE_S},{BYTES},ring,points:{STEPS}/"
                           + "/".join(f"{loss:.9g}" for loss in losses) + "\n")
        done = subprocess.run([BERTH, "sim", "--cluster", cluster, "--workload", workload,
                               "--policy", "fifo", "--flow", flow, "--seed", str(seed),
                               "--json"], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["quality"]["time_to"]["90"]


class JpasLive(unittest.TestCase):
    def setUp(self):
        why = net_lab.missing() or net_lab.usable("nft") and net_lab.usable("sockets")
        if why:
            self.skipTest(why)

    @contextlib.contextmanager
    def networks(self, *flows):
        """Side by side, and gone when done."""
        with contextlib.ExitStack() as stack:
            try:
                yield [stack.enter_context(contextlib.closing(Network(flow))) for flow in flows]
            except RuntimeError as reason:
                self.skipTest(str(reason))

    def run_jobs(self, jobs, networks, patience_s):
        """Times to 90 % in each network."""
        begun = time.monotonic()
        for at, losses in jobs:
            time.sleep(max(begun + at - time.monotonic(), 0))
            for network in networks:
                network.submit(losses)
        end = time.monotonic() + patience_s
        while any(None in network.times() for network in networks):
            if time.monotonic() > end:
                self.fail(f"not there yet: {[n.times() for n in networks]}")
            time.sleep(0.5)
        return [network.times() for network in networks]

    def race(self, count, gap_s, seed, patience_s):
        """Mean times to 90 % without levels and with jpas, measured and simulated."""
        jobs = list(zip(arrivals(count, gap_s, seed), trainings(count, seed)))
        with self.networks("fair", FLOW) as (fair, jpas):
            measured = self.run_jobs(jobs, (fair, jpas), patience_s)
            flows = jpas.daemon.ask("GET", "/v1/flows")[1]["flows"]
            self.assertTrue(flows and all(flow.get("bytes") for flow in flows), flows)
        simulated = [predict(jobs, "fair", seed), predict(jobs, FLOW, seed)]
        means = [statistics.mean(times) for times in measured]
        print(f"phase {seed}: time to 90 %, fair {means[0]:.1f} s (simulated {simulated[0]:.1f}), "
              f"jpas {means[1]:.1f} s (simulated {simulated[1]:.1f}), "
              f"{100 * (means[1] / means[0] - 1):+.0f} %", flush=True)
        return means, simulated

    def test_jobs_get_good_sooner(self):
        means, _ = self.race(4, 5, 1, 60)
        self.assertLess(means[1], 0.9 * means[0])

    @unittest.skipUnless(SOAK, "takes five minutes; BERTH_SOAK=1")
    def test_as_much_sooner_as_simulated_in_several_phases(self):
        runs = [self.race(6, 10, seed, 120) for seed in (1, 2, 3)]
        fair, jpas = (statistics.mean(means[i] for means, _ in runs) for i in (0, 1))
        fair_said, jpas_said = (statistics.mean(said[i] for _, said in runs) for i in (0, 1))
        self.assertLess(jpas, 0.8 * fair)
        self.assertLess(abs(jpas / jpas_said - 1), 0.10)
        self.assertLess(abs(fair / fair_said - 1), 0.25)


if __name__ == "__main__":
    unittest.main()
