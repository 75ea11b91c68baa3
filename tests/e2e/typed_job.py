"""A job that runs as fast as the type of its fake GPU lets it: STEPS SPEEDS GPUS [LOAD PAUSE].

SPEEDS are steps per second on each type, GPUS how many of each type there are, in the order of
berthd's: the GPU that the job was given tells the type.  It reports every step it has made, as a
training loop does, saves when it is told to stop, and goes on from there.  Before its first step
and while it saves it takes so many seconds."""
import os
import signal
import socket
import sys
import time

steps = int(sys.argv[1])
speeds = [float(word) for word in sys.argv[2].split(",")]
counts = [int(word) for word in sys.argv[3].split(",")]
load_s, pause_s = [float(word) for word in sys.argv[4:6]] or [0, 0]
gpu = int(os.environ["HIP_VISIBLE_DEVICES"].split(",")[0])
at = 0
while gpu >= counts[at]:
    gpu -= counts[at]
    at += 1
per_s = speeds[at]
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
saved = os.path.join(os.environ["BERTH_CKPT_DIR"], "step")
try:
    with open(saved) as file:
        first = int(file.read())
except (OSError, ValueError):
    first = 0
wire = socket.socket(socket.AF_UNIX)
wire.connect(os.environ["BERTH_SOCKET"])
time.sleep(load_s)
wire.sendall(b"hello 1\ntotal %d\nreport %d -\n" % (steps, first))
begin = time.monotonic()
step = first
while step < steps and not told:
    time.sleep(max(begin + (step + 1 - first) / per_s - time.monotonic(), 0))
    step = min(steps, first + int((time.monotonic() - begin) * per_s + 1e-6))
    wire.sendall(b"report %d -\n" % step)
if step < steps:
    time.sleep(pause_s)
    with open(saved + ".new", "w") as file:
        file.write(str(step))
    os.rename(saved + ".new", saved)
    wire.sendall(b"saved %d\n" % step)
    os._exit(85)
