"""A job that takes turns on a device with others: STEPS PER_S FILE.

FILE is the device: one process at a time works there.  Alone the job makes PER_S steps a second.  A
step for which it had to wait takes half as long again, as what it had there is gone.  It reports
every step, saves when it is told to stop, and goes on from there."""
import fcntl
import os
import signal
import socket
import sys
import time

steps, per_s = int(sys.argv[1]), float(sys.argv[2])
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
saved = os.path.join(os.environ["BERTH_CKPT_DIR"], "step")
try:
    with open(saved) as file:
        step = int(file.read())
except (OSError, ValueError):
    step = 0
wire = socket.socket(socket.AF_UNIX)
wire.connect(os.environ["BERTH_SOCKET"])
wire.sendall(b"hello 1\ntotal %d\nreport %d -\n" % (steps, step))
device = os.open(sys.argv[3], os.O_RDWR | os.O_CREAT)
while step < steps and not told:
    took_s = 0.9 / per_s
    try:
        fcntl.flock(device, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(device, fcntl.LOCK_EX)
        took_s *= 1.5
    time.sleep(took_s)
    fcntl.flock(device, fcntl.LOCK_UN)
    time.sleep(0.1 / per_s)
    step += 1
    wire.sendall(b"report %d -\n" % step)
if step < steps:
    with open(saved + ".new", "w") as file:
        file.write(str(step))
    os.rename(saved + ".new", saved)
    wire.sendall(b"saved %d\n" % step)
    os._exit(85)
