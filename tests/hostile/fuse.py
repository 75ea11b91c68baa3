"""fuse - a file system that does not answer, as a user's own server or a dead one on the network.

It is mounted by root, for all users, and speaks the kernel's protocol itself: a file that can be
found, opened and read, unless the operation is one that is 'held'.
"""
import ctypes
import os
import select
import stat
import struct
import threading

IN, OUT = struct.Struct("=IIQQIIIHH"), struct.Struct("=IiQ")
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, INIT, FLUSH = 1, 2, 3, 14, 15, 18, 26, 25
BATCH_FORGET, INTERRUPT, OPENDIR, ACCESS, STATFS = 42, 36, 27, 34, 17
ALL = frozenset(range(1, 60)) - {INIT}
MNT_FORCE, MNT_DETACH = 1, 2
ENOSYS = 38
TEXT = b"step 1\n" * 1000
libc = ctypes.CDLL(None, use_errno=True)


class Mount:
    """A file system of one folder with one file, 'out', of a user; or of that file alone."""

    def __init__(self, path, user, held=(), file=False):
        self.path, self.user, self.held = path, user, held
        self.asked = []  # operations, as they came
        self.holds = threading.Event()  # one was not answered
        self.root = stat.S_IFREG | 0o666 if file else stat.S_IFDIR | 0o777
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        options = (f"fd={self.fd},rootmode={self.root:o},user_id={user.uid},"
                   f"group_id={user.gid},allow_other")
        if libc.mount(b"slow", path.encode(), b"fuse", 6, options.encode()) < 0:
            error = ctypes.get_errno()
            os.close(self.fd)
            raise OSError(error, os.strerror(error))
        self.end, wake = os.pipe()
        self.wake = wake
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        if self.fd < 0:
            return
        libc.umount2(self.path.encode(), MNT_FORCE | MNT_DETACH)
        os.close(self.wake)
        self.thread.join()
        os.close(self.fd)  # whoever still waits is told that it has gone
        self.fd = -1

    def attributes(self, inode):
        mode = self.root if inode == 1 else stat.S_IFREG | 0o666
        return struct.pack("=QQQQQQIIIIIIIIII", inode, len(TEXT), 8, 0, 0, 0, 0, 0, 0, mode, 1,
                           self.user.uid, self.user.gid, 0, 4096, 0)

    def answer(self, unique, data=b"", error=0):
        try:
            os.write(self.fd, OUT.pack(OUT.size + len(data), -error, unique) + data)
        except OSError:
            pass  # whoever asked has gone

    def serve(self):
        while True:
            ready = select.select([self.fd, self.end], [], [])[0]
            if self.end in ready:
                return
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError:
                continue
            _, kind, unique, inode, *_ = IN.unpack(request[:IN.size])
            self.asked.append(kind)
            self.handle(kind, unique, inode, request[IN.size:])

    def handle(self, kind, unique, inode, rest):
        if kind == INIT:
            self.answer(unique, struct.pack("=IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 65536, 1, 0, 0, 0))
        elif kind in (FORGET, BATCH_FORGET, INTERRUPT):
            pass
        elif kind in self.held:
            self.holds.set()
        elif kind == LOOKUP:
            self.answer(unique, struct.pack("=QQQQII", 2, 0, 0, 0, 0, 0) + self.attributes(2))
        elif kind == GETATTR:
            self.answer(unique, struct.pack("=QII", 0, 0, 0) + self.attributes(inode))
        elif kind in (OPEN, OPENDIR):
            self.answer(unique, struct.pack("=QII", 7, 1, 0))  # direct: each read is asked
        elif kind == READ:
            _, offset, size = struct.unpack("=QQI", rest[:20])
            self.answer(unique, TEXT[offset:offset + size])
        elif kind == STATFS:
            self.answer(unique, struct.pack("=QQQQQIII28x", 0, 0, 0, 0, 0, 4096, 255, 4096))
        elif kind in (RELEASE, FLUSH, ACCESS):
            self.answer(unique)
        else:
            self.answer(unique, error=ENOSYS)
