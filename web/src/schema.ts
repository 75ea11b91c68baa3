// schema.ts - the API's types; made by types.mjs from docs/api/openapi.yaml, not by hand.

export interface Token {
  id: number;
  scope: "flow" | "read" | "submit" | "admin";
  uid: number;
  /** the number, until the name was looked up */
  user: string;
  state: "valid" | "expired" | "revoked";
  created: number;
  /** absent: never */
  expires?: number;
  /** last; on disk to the minute */
  used?: number;
  revoked?: number;
}

/** numbers (seconds, bytes), texts as people write them (90m, 2G, te,be), none for no limit, null to forget what was set */
export interface LimitValues {
  jobs?: unknown;
  waiting?: unknown;
  job_gpus?: unknown;
  job_time?: unknown;
  weight?: unknown;
  class?: unknown;
  grace?: unknown;
  connections?: unknown;
  bytes_in_flight?: unknown;
  bytes_stored?: unknown;
  submits_per_s?: unknown;
}

export interface LimitSettings {
  default?: LimitValues;
  users?: Record<string, LimitValues>;
  groups?: Record<string, LimitValues>;
  /** alone: forget all that was set */
  reset?: boolean;
}

export interface Limits {
  user: string;
  /** root and the user that berthd runs as have no limits */
  exempt: boolean;
  /** by key */
  limits: Record<string, {
    /** absent: none */
    limit?: unknown;
    /** absent: it is not counted */
    used?: number;
    scope?: "default" | "group" | "user";
    /** of the user or group */
    name?: string;
    set?: "built-in" | "file" | "live";
  }>;
  /** for administrators */
  settings?: ({
    scope: "default" | "group" | "user";
    name?: string;
    key: string;
    value: unknown;
    set: "built-in" | "file" | "live";
  })[];
}

/** a job as somebody asks for it */
export interface Request {
  /** program and arguments; with a script: its arguments */
  command?: string[];
  /** a batch script with a first line "#!" */
  script?: string;
  name?: string;
  /** absolute */
  cwd?: string;
  env?: Record<string, string>;
  gpus?: number;
  /** v100|p100 */
  types?: string;
  min_gpus?: number;
  max_gpus?: number;
  nodes?: number;
  /** nodes that are among its own: n2,n3; exactly these if it has no more */
  nodelist?: string;
  /** nodes that it never uses */
  exclude?: string;
  /** no nodes but these: those that have a feature */
  within?: string;
  /** of the whole gang; default: 1 without accelerators, else none */
  cpus?: number;
  mem_bytes?: number;
  class?: "te" | "be";
  grace_s?: number;
  pause_s?: number;
  load_s?: number;
  /** saves by itself so often */
  ckpt_s?: number;
  steps?: number;
  time_limit_s?: number;
  /** the signal comes so long before the time limit */
  warn_s?: number;
  signal?: string;
  /** who of a Slurm job gets it; otherwise nobody */
  signal_to?: "batch" | "steps" | "all";
  weight?: number;
  entity?: string;
  deadline?: number;
  /** row of the throughput table, or a name for jobs that run alike: their rates are learned together */
  kind?: string;
  /** may share its GPUs with another job */
  shared?: boolean;
  /** that it needs of each GPU */
  gpu_memory_bytes?: number;
  /** a step alone on the fastest type, until its rate is known; default: 1 */
  step_time_s?: number;
  /** path; %j id, %x name, %u user, %A array, %a index, %% percent */
  output?: string;
  error?: string;
  ckpt_dir?: string;
  /** a Slurm job appends lines "STEP LOSS TOTAL" to it; place holders as in output */
  progress_file?: string;
  /** of the submitter, for the job's files; 0: 022 */
  umask?: number;
  /** extended regular expression of at most 512 bytes with a group for the step and one for the loss, by name ((?<step>…), (?<loss>…)) or in this order */
  pattern?: string;
  /** to Slurm, by its clock: tells a job from another of the same number */
  submitted?: number;
  /** once it runs nobody may take its place */
  stays?: boolean;
  /** goes back to the queue if its node or supervisor fails */
  requeue?: boolean;
  /** starts again after its own failure */
  retries?: number;
  hold?: boolean;
  /** not before */
  begin?: number;
  dependency?: ({
    kind?: "after" | "afterok" | "afternotok" | "afterany" | "singleton";
    id?: number;
  })[];
  /** what another system makes it wait for */
  waits_for?: string;
  array_index?: number;
  /** so many of its array run at once */
  array_limit?: number;
  slurm_names?: boolean;
  tasks_per_node?: number;
}

export interface Job {
  id: number;
  name?: string;
  user?: string;
  class: string;
  state: "PENDING" | "RUNNING" | "STOPPING" | "COMPLETED" | "FAILED" | "CANCELLED" | "REJECTED" | "HELD";
  /** one, for a job that waits, was rejected or failed */
  reason?: string;
  gpus: number;
  types?: string;
  placement?: {
    node?: string;
    type?: string;
    gpus?: number[];
  }[];
  attempt?: number;
  preemptions?: number;
  exit_code?: number;
  submit: number;
  /** first start */
  start?: number;
  end?: number;
  waited_s?: number;
  served_gpu_s?: number;
  command?: string[];
  cwd?: string;
  output?: string;
  entity?: string;
  array_id?: number;
  array_index?: number;
  progress?: {
    step?: number;
    steps?: number;
    loss?: number;
    steps_per_s?: number;
    eta_s?: number;
  };
  /** may share its GPUs with another job; in the answer to one job */
  shared?: boolean;
  /** the job that it shares its GPUs with now */
  beside?: number;
  /** the part of its speed alone that it has kept beside that job so far; absent: unknown, or another user's job */
  kept?: number;
  /** each time that it shared GPUs, newest first; in the answer to one job, to its owner */
  sharing?: Shared[];
  /** that its rates are learned with; in the answer to one job */
  kind?: string;
  /** on each type it may use; in the answer to one job */
  rates?: Rate[];
  /** of each GPU, as declared; in the answer to one job */
  gpu_memory_bytes?: number;
  /** the most that its processes were seen to have of one GPU; in the answer to one job */
  gpu_memory_used_bytes?: number;
  /** that it is taken to need, where it shares and declared none: as jobs of its kind had; in the answer to one job */
  gpu_memory_expected_bytes?: number;
  /** part of the time that its GPUs compute, with the job alone on them; in the answer to one job */
  gpu_busy?: number;
  expected_start?: ExpectedTime;
  expected_end?: ExpectedTime;
  preempted_by?: {
    job?: number;
    rule?: string;
    at?: number;
    predicted_cost_gpu_s?: number;
    actual_cost_gpu_s?: number;
    wait_saved_s?: number;
  }[];
}

/** A time in the future, as quantiles over possible futures. Of a waiting job the next start; four times in five it is between p10 and p90. A quantile beyond the horizon is absent. */
export interface ExpectedTime {
  p10?: number;
  p50?: number;
  p90?: number;
  /** share of the futures in which it is beyond the horizon; absent: of none */
  later?: number;
  horizon: number;
  /** whose run times were taken: of ended jobs of the same user, name and size; of the same user and size; of the same size; of all; or their ratio to the declared work. waits: those that jobs of this size had */
  basis: "name" | "user" | "size" | "all" | "estimate" | "waits";
  /** how many ended jobs these were */
  basis_jobs?: number;
  made: number;
  policy: string;
  /** baseline: from the last waits of jobs of this size, where playing forward was worse lately */
  method: "played" | "baseline";
  /** share of the last such forecasts that held: it happened between p10 and p90 */
  coverage_80?: number;
  /** how many these were */
  coverage_n?: number;
}

export interface AheadFigures {
  policy?: string;
  jobs_finished?: number;
  /** without GPUs */
  mean_wait_s?: number;
  /** from now or its submission on, of a job */
  mean_completion_s?: number;
  /** part of the GPU-time that jobs hold */
  gpu_utilization?: number;
  preemptions?: number;
}

export interface DryRun {
  can_ever_run: boolean;
  /** it would get its GPUs at once, from the jobs it preempts if there are any */
  now?: boolean;
  placement?: {
    node?: string;
    type?: string;
    gpus?: number[];
  }[];
  start?: ExpectedTime;
  /** why it would wait, or can never run */
  reason?: string;
  /** at most 64 */
  preempts: {
    job: number;
    /** GPU time that preempting it wastes */
    price_gpu_s: number;
  }[];
  /** of the user that it would exceed */
  limits: {
    key: string;
    text: string;
  }[];
}

export interface ForecastQuality {
  policy?: string;
  target?: "start" | "end";
  /** which method is shown */
  shown?: "played" | "baseline";
  /** forecasts of the last two weeks that have turned out */
  n?: number;
  coverage_80?: number;
  /** of p50 */
  median_abs_error_s?: number;
  /** mean pinball loss of playing forward beside the baseline's */
  loss_ratio?: number;
}

export interface Forecast {
  policy: string;
  /** why there is no forecast */
  reason?: string;
  made?: number;
  horizon?: number;
  /** possible futures that were played */
  replicates?: number;
  /** processor time */
  took_s?: number;
  jobs: {
    id: number;
    name?: string;
    user?: string;
    state: string;
    gpus: number;
    expected_start?: ExpectedTime;
    expected_end?: ExpectedTime;
  }[];
  calibration: {
    n?: number;
    coverage_80?: number;
    median_abs_error_s?: number;
    days: number;
    kinds: ForecastQuality[];
  };
}

export interface Rate {
  /** as declared, or NAME:PROGRAM:USER:GPUS */
  kind?: string;
  type: string;
  gpus?: number;
  /** over more nodes than needed */
  spread?: boolean;
  /** of the whole gang; absent: unknown */
  steps_per_s?: number;
  basis: "measured" | "estimated" | "unknown" | "told";
  /** reports that were measured */
  n?: number;
  /** four jobs in five lie between low and high */
  low?: number;
  high?: number;
}

/** what two jobs made on the same GPUs, from when both first made steps until one of them left */
export interface Shared {
  /** the other job */
  beside: number;
  from: number;
  /** absent: they still share */
  to?: number;
  gpus: number;
  /** time in which both made steps */
  shared_s: number;
  /** the part of its speed alone that the job kept; absent: unknown */
  kept?: number;
  /** the same of the other job */
  beside_kept?: number;
  /** GPU-time that the same steps would have taken in addition, had each run alone */
  gained_gpu_s: number;
  /** GPU-time of the stops that formed or parted the pair: to checkpoint, to resume, work done twice */
  lost_gpu_s: number;
}

/** what all pairs that are remembered come to */
export interface SharingTotals {
  /** so many pairs of jobs have shared GPUs */
  pairs: number;
  /** of them now */
  running: number;
  shared_gpu_s: number;
  gained_gpu_s: number;
  lost_gpu_s: number;
}

export interface ExportedJob {
  id: number;
  user: string;
  class: "be" | "te";
  state?: "completed" | "failed" | "cancelled";
  /** it has not ended: no state and no end */
  live?: boolean;
  /** of one that has not ended: work so far, as work_s */
  made_s?: number;
  /** without GPUs */
  wait_s?: number;
  gpus: number;
  types?: string;
  /** how often it started */
  attempts: number;
  preemptions: number;
  submit: number;
  /** its first */
  start?: number;
  end?: number;
  /** when it was cancelled */
  cancel?: number;
  /** dependency: what it depended on ended otherwise */
  cancelled_by?: "owner" | "administrator" | "dependency";
  /** equal for jobs of a user with the same command, as long as berthd runs; says nothing else of it */
  command?: string;
  /** jobs whose end it waited for: 12|15 */
  after?: string;
  /** it was held until then, by its owner, another job or a time */
  eligible?: number;
  name?: string;
  entity?: string;
  kind?: string;
  nodelist?: string;
  exclude?: string;
  gpus_min?: number;
  gpus_max?: number;
  nodes?: number;
  spread?: boolean;
  /** it may share its GPUs */
  shared?: boolean;
  cpus?: number;
  mem_bytes?: number;
  weight?: number;
  deadline?: number;
  ckpt_s?: number;
  time_limit_s?: number;
  /** alone at its size, on a type of speed 1; lost work counts once */
  work_s?: number;
  /** the same in steps, where it reported them */
  steps?: number;
  /** work_s per step */
  step_s?: number;
  /** it declared its work */
  declared: boolean;
  /** in steps where there are steps, else in seconds */
  declared_work?: number;
  grace_s?: number;
  /** from the order to stop until it has left: measured, else declared */
  pause_s?: number;
  /** from its placement to its first step: measured, else declared */
  load_s?: number;
  /** it keeps its work when it is stopped: measured, else whether it said so */
  keeps?: boolean;
  /** it said that it saves before it stops */
  saves?: boolean;
  /** that pause_s and keeps were measured at */
  stops?: number;
  /** work that it lost and made again */
  redone_s?: number;
  declared_pause_s?: number;
  declared_load_s?: number;
}

export interface ExportedCluster {
  policy: string;
  /** of its random numbers */
  seed: number;
  /** which policy decided from when on */
  policies: {
    since: number;
    policy: string;
  }[];
  /** the first node that fits, not the tightest */
  first_fit: boolean;
  types: {
    name: string;
    speed: number;
    usd_per_hour?: number;
  }[];
  nodes: {
    name: string;
    type?: string;
    gpus: number;
    cpus: number;
    mem_bytes: number;
    rack: number;
  }[];
  /** weights, for administrators */
  groups?: {
    name: string;
    weight: number;
    fifo?: boolean;
  }[];
  /** the same */
  users?: {
    name: string;
    weight: number;
    fifo?: boolean;
  }[];
  /** the newest 5000 events of kind node_down, node_up and foreign, with the node's place in nodes */
  changes: Event[];
  /** jobs that ended before this time are no longer kept; absent: all are */
  history_from?: number;
}

export interface PairRate {
  kind: string;
  /** the kind that it shared GPUs with */
  beside: string;
  type: string;
  /** estimated: by what both kinds keep beside others; of kinds that have jobs, or of the one asked for */
  basis: "estimated" | "measured";
  /** the part of its rate alone that it makes */
  kept: number;
  /** estimated: the part is above this and below high four times in five */
  low?: number;
  high?: number;
  /** measured: reports */
  n?: number;
}

export interface Why {
  id: number;
  state: string;
  can_ever_run: boolean;
  reasons: ({
    token: "held" | "begin" | "dependency" | "array_limit" | "never" | "calendar" | "resources" | "foreign" | "node_down" | "order" | "no_victim" | "worth" | "value" | "deadline" | "share" | "round" | "sharing" | "policy" | "victim_leaving" | "starting" | "running" | "stopping" | "preempted" | "ended";
    text: string;
  })[];
  /** who goes first, at most 100 */
  ahead: number[];
  /** further ones that are not named */
  ahead_more?: number;
  /** jobs that the last cost test for this job looked at, at most 8 */
  considered?: {
    job: number;
    /** GPU time that preempting it wastes */
    price_gpu_s: number;
    /** completion time that preempting all of them saves */
    benefit_s: number;
    verdict: string;
  }[];
  /** found by trying; absent if nothing small helps */
  smallest_change?: string;
  expected_start?: ExpectedTime;
  expected_end?: ExpectedTime;
}

export interface Node {
  name?: string;
  type?: string;
  gpus?: number;
  up?: boolean;
  /** why it is down or drained, in Slurm's words */
  reason?: string;
  held?: {
    gpu?: number;
    jobs?: number[];
    foreign?: boolean;
  }[];
  /** by accelerator: the share of the last moment in which it computed; where the maker's library says so */
  busy?: number[];
  cpus?: number;
  cpus_free?: number;
  mem_bytes?: number;
  mem_free_bytes?: number;
}

export interface Entry {
  at?: number;
  victim?: number;
  for?: number;
  rule?: string;
  gpus?: number;
  predicted_cost_gpu_s?: number;
  actual_cost_gpu_s?: number;
  pause_gpu_s?: number;
  load_gpu_s?: number;
  redo_gpu_s?: number;
  wait_saved_s?: number;
  /** the victim has not ended; figures are so far */
  open?: boolean;
}

export interface Flow {
  job?: number;
  /** 0 goes first */
  level?: number;
  hosts?: string[];
  /** of the flow policy, more goes first; absent: none */
  score?: number;
  /** sent so far; absent: nobody has counted */
  bytes?: number;
  /** lately */
  bytes_per_s?: number;
  /** why it has this level */
  why?: string;
}

export interface Server {
  version?: string;
  pid?: number;
  policy?: string;
  flow?: string;
  executor?: string;
  /** why Slurm does not answer; absent while it does */
  trouble?: string;
  /** why nothing is accepted: the database cannot be written or found; absent otherwise */
  store_trouble?: string;
  /** why jobs could not be started in the last seconds, such as a full disk; they are tried again; absent otherwise */
  start_trouble?: string;
  system?: boolean;
  /** what the kernel enforces for each job; absent on a cluster of Slurm */
  enforced?: ("processes" | "memory" | "pids" | "cpu" | "devices")[];
  /** why the kernel does not enforce all of it; absent if it does */
  not_enforced_because?: string;
  /** folder of the pipes of NVIDIA's MPS, which jobs that share a GPU are told; absent without */
  mps?: string;
  state_dir?: string;
  /** where other machines connect; absent: it does not listen */
  tls_port?: number;
  /** of its public key, as tokens have it; with tls_port */
  fingerprint?: string;
  started?: number;
  jobs?: {
    pending?: number;
    running?: number;
    held?: number;
  };
  gpus?: {
    total?: number;
    held?: number;
    foreign?: number;
  };
}

/** what one attempt holds, or held, of one node; without a start it is promised */
export interface Span {
  job: number;
  attempt: number;
  class: string;
  /** place in the list of nodes, from 0 */
  node: number;
  gpus: number[];
  start?: number;
  end?: number;
  how?: "finished" | "preempted" | "failed" | "lost" | "cancelled" | "resized";
}

export interface Snapshot {
  /** the newest event that is in it */
  seq: number;
  now: number;
  me: {
    user?: string;
    /** may see and do everything */
    all: boolean;
  };
  server: Server;
  nodes: Node[];
  /** those that have not ended */
  jobs: Job[];
  /** newest first, the last 200 */
  ended: Job[];
  spans: Span[];
  /** of the ledger, newest first */
  entries: Entry[];
  sharing?: SharingTotals;
}

/** columns of equal length; a value holds until the next */
export interface Trends {
  t: number[];
  gpus: number[];
  /** accelerators */
  held: number[];
  foreign: number[];
  /** jobs */
  running: number[];
  waiting: number[];
  reasons: {
    token: string;
    jobs: number[];
  }[];
  /** users, of jobs that name no entity */
  entities: {
    name: string;
    /** accelerators, shared out evenly by weight among those who want some */
    due: number[];
    got: number[];
  }[];
}

export interface Attempt {
  attempt: number;
  placed?: number;
  start?: number;
  /** made steps from then on */
  loaded?: number;
  /** was told to leave */
  recalled?: number;
  end?: number;
  seats?: {
    node: number;
    gpus: number[];
  }[];
  type?: string;
  gpus: number;
  how?: "finished" | "preempted" | "failed" | "lost" | "cancelled";
  rule?: string;
  for?: number;
  exit_code?: number;
  /** saved before it left */
  clean?: boolean;
  step_from?: number;
  step_to?: number;
}

export interface Story {
  id: number;
  /** false: it is so long that its beginning is left out */
  complete: boolean;
  attempts: Attempt[];
  speeds: {
    type: string;
    gpus: number;
    steps_per_s: number;
    low: number;
    high: number;
    reports: number;
  }[];
  loss: {
    points: {
      step: number;
      loss: number;
      at?: number;
      attempt: number;
    }[];
    fit?: {
      family: "flat" | "inv" | "exp";
      predictable: boolean;
      /** low to high holds the truth four times in five, if the family is right */
      ahead: {
        step: number;
        value: number;
        low: number;
        high: number;
      }[];
    };
  };
}

/** a line of the event stream; which keys there are depends on its kind */
export interface Event {
  seq: number;
  at: number;
  kind: string;
  job?: number;
  attempt?: number;
  class?: string;
  /** how many (submitted, changed), or which (foreign) */
  gpus?: number | number[];
  /** placed, resizing: on GPUs that it shares with this job */
  beside?: number;
  seats?: {
    node: number;
    gpus: number[];
  }[];
  node?: number;
  rule?: string;
  for?: number;
  exit_code?: number;
  step?: number;
  steps_per_s?: number;
  loss?: number;
  level?: number;
  why?: string;
}
