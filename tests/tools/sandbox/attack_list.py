# ruff: noqa: E501
"""Hostile code, by family. A snippet prints PWNED when it reaches its goal; the range also checks from outside.

Placeholders: @HOME@ a decoy home, @OUT@ a decoy directory, @E0@ and @E1@ the halves of a secret in the caller's
environment, @PORT@ a canary server on loopback, @PID@ the caller.
"""

from __future__ import annotations

import platform
from typing import NamedTuple


class Attack(NamedTuple):
    family: str
    name: str
    code: str
    timeout: float = 1.5


_NUMBERS = """
shmget:29:194 vfork:58:-1 clone:56:220 clone3:435:435 tgkill:234:131 tkill:200:130 rt_sigqueueinfo:129:138
pidfd_send_signal:424:424 pidfd_open:434:434 sched_setaffinity:203:122 prlimit64:302:261 ptrace:101:117
process_vm_readv:310:270 pidfd_getfd:438:438 kcmp:312:272 open_by_handle_at:304:265 openat2:437:437 accept4:288:242
io_uring_setup:425:425 bpf:321:280 perf_event_open:298:241 userfaultfd:323:282 add_key:248:217 keyctl:250:219
pivot_root:155:41 open_tree:428:428 fsopen:430:430 capset:126:91 personality:135:92 syncfs:306:267 seccomp:317:277
semget:64:190 landlock_restrict_self:446:446 setrlimit:160:164
"""
"""System calls that the snippets make by number, on x86_64 and aarch64; -1 for one that does not exist."""

_COLUMN = 2 if platform.machine() in ("aarch64", "arm64") else 1
_TABLE = {row[0]: int(row[_COLUMN]) for row in (entry.split(":") for entry in _NUMBERS.split())}
_LIBC = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
numbers = {_TABLE}
def sc(name, *arguments): return libc.syscall(numbers[name], *arguments)
""".lstrip()

_CHANNEL = """
import os, socket
for f in range(3, 64):
    try: s = socket.socket(fileno=f); break
    except OSError: pass
"""


def _syscall(name: str, call: str, *, goal: str = ">= 0") -> Attack:
    """A raw system call that must fail."""
    return Attack("kernel", name, f"{_LIBC}r = {call}\nprint('PWNED' if r {goal} else 'denied', r)")


def _program(family: str, name: str, code: str, timeout: float = 1.5) -> Attack:
    return Attack(family, name, code.strip("\n"), timeout)


ATTACKS: tuple[Attack, ...] = (
    # -- time
    Attack("time", "sleep", "import time\ntime.sleep(60)\nprint('PWNED')", 0.5),
    Attack("time", "busy C loop", "sum(range(10**12))\nprint('PWNED')", 0.5),
    Attack("time", "big power", "x = 9**9**9\nprint('PWNED')", 0.5),
    Attack("time", "regex backtracking", "import re\nre.match(r'(a+)+$', 'a'*64+'b')\nprint('PWNED')", 0.5),
    Attack("time", "stop itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nprint('PWNED')", 0.5),
    Attack("time", "block every signal", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass", 0.5),
    Attack("time", "except BaseException", "while True:\n  try:\n    while True: pass\n  except BaseException: pass", 0.5),
    Attack("time", "destructor loops", "class A:\n  def __del__(self):\n    while True: pass\na = A()\ndel a", 0.5),
    Attack("time", "exit handler loops", "import atexit\n@atexit.register\ndef f():\n  while True: pass", 0.5),
    Attack("time", "thread never ends", "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()", 0.5),
    Attack("time", "fifo waits for a writer", "import os\nos.mkfifo('f')\nopen('f').read()\nprint('PWNED')", 0.5),
    Attack("time", "alarm after the end", "import signal, os\nsignal.signal(14, lambda *a: None)\nsignal.setitimer(0, 0.001, 0.001)\nwhile True: pass", 0.5),
    Attack("time", "more CPU than wall", "import hashlib, threading\ndef f():\n  while True: hashlib.sha256(b'x'*10**7)\nfor _ in range(8): threading.Thread(target=f).start()", 0.7),
    # -- memory
    Attack("memory", "string doubling", "s = 'x'\nwhile True: s += s"),
    Attack("memory", "dict creep", "d = {}\ni = 0\nwhile True:\n  d[i] = bytes(10**6)\n  i += 1"),
    Attack("memory", "mmap", "import mmap\nkeep = [mmap.mmap(-1, 2**28) for _ in range(40)]\nprint('PWNED')"),
    Attack("memory", "numpy", "import numpy as np\nx = np.ones(10**9)\nprint('PWNED', x.sum())"),
    _program("memory", "memfd", """
import os, mmap
keep = []
for i in range(50):
    f = os.memfd_create('x'); keep.append(f)
    for _ in range(30): os.write(f, b'x' * 2**20)
print('PWNED')
"""),
    _program("memory", "no rlimit left", """
import resource
try: resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
except Exception as e: print(e)
x = bytearray(4 * 2**30)
print('PWNED')
"""),
    Attack("memory", "zip bomb", "import zlib\nd = zlib.compress(bytes(10**7))\no = zlib.decompressobj()\nk = []\nwhile True: k.append(zlib.decompress(d))"),
    Attack("memory", "sysv shared memory", _LIBC + "r = sc('shmget', 0, 2**26, 0o1600)\nprint('PWNED' if r >= 0 else 'denied')"),
    Attack("memory", "deep nesting", "eval('(' * 10**6 + ')' * 10**6)"),
    Attack("memory", "deep recursion", "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()"),
    Attack("memory", "recursive repr", "x = []\nfor _ in range(10**6): x = [x]\nprint(x)"),
    Attack("memory", "pipes", "import os, fcntl\nk = []\nfor _ in range(200):\n  r, w = os.pipe(); k.append((r, w)); fcntl.fcntl(w, 1031, 2**20)\nprint('PWNED')"),
    _program("memory", "descriptors in flight", """
import socket, os
keep = []
try:
    for _ in range(2000):
        a, b = socket.socketpair(); r, w = os.pipe()
        os.set_blocking(w, False)
        try: os.write(w, b'x' * 65536)
        except OSError: pass
        socket.send_fds(a, [b'x'], [r, w, b.fileno()])
        keep.append(a.detach()); os.close(r); os.close(w); b.detach()
    print('PWNED')
except OSError as e: print(e)
"""),
    _program("memory", "buffers of sockets", """
import socket
keep, held = [], 0
for _ in range(28):
    for s in socket.socketpair():
        keep.append(s)
        try: s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**30)
        except OSError: pass
        s.setblocking(False)
        try:
            while True: held += s.send(bytes(65536))
        except OSError: pass
print('PWNED' if held > 100 * 2**20 else 'few', held)
""", 3.0),
    Attack("memory", "the file behind standard input", "import os\ntry:\n  for _ in range(31): os.write(0, bytes(2**20))\n  print('PWNED')\nexcept OSError as e: print(e)"),
    _program("memory", "page tables", """
import ctypes, threading, time, platform
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
size, start = ctypes.c_size_t(4096), ctypes.c_long(0)
def scatter():
    held = 0
    for i in range(1, 60000):  # a page in each GB: two more of the kernel's to map it
        at = libc.mmap(ctypes.c_void_p(i << 30), size, 3, 0x100022, -1, start)
        if at and at != 2**64 - 1:
            ctypes.memset(at, 1, 1)
            held += 1
    print('PWNED' if held > 30000 else 'few', held)
threading.Thread(target=scatter).start()
libc.syscall(60 if platform.machine() == 'x86_64' else 93, 0)
""", 5.0),
    Attack("memory", "code too large to read", "'" + "x" * 10**6 + "'"),
    # -- output
    Attack("output", "packets", "import fcntl, os\nfcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_DIRECT)\nwhile True: os.write(1, b'x')"),
    Attack("output", "stderr flood", "import sys\nwhile True: sys.stderr.write('E' * 10000)"),
    Attack("output", "both floods", "import sys\nwhile True: print('a' * 9999); print('b' * 9999, file=sys.stderr)"),
    Attack("output", "flood by descriptor", "import os\nwhile True: os.write(1, b'\\0' * 65536)"),
    Attack("output", "flood from threads", "import os, threading\ndef f():\n  while True: os.write(2, b'x' * 65536)\nfor _ in range(4): threading.Thread(target=f).start()"),
    Attack("output", "surrogates", "print('\\ud800\\udfff' * 10)"),
    Attack("output", "escape codes", "print('\\x1b[2J\\x1b]0;x\\x07\\u202e\\0')"),
    Attack("output", "output closed", "import sys, os\nsys.stdout.close(); os.close(1); os.close(2)"),
    Attack("output", "output replaced", "import sys\nsys.stdout = sys.stderr = None\nprint('x')\n1/0"),
    Attack("output", "hostile repr", "class A:\n  def __repr__(self): raise SystemExit(70)\nA()"),
    Attack("output", "hostile exception", "class E(BaseException):\n  def __str__(self): raise E\n  __repr__ = __str__\nraise E"),
    Attack("output", "non-blocking output", "import os\nos.set_blocking(1, False)\nwhile True:\n  try: os.write(1, b'x' * 10**6)\n  except BlockingIOError: pass"),
    # -- disk
    Attack("disk", "sparse file", "f = open('s', 'wb')\nf.truncate(2**40)\nprint('PWNED')"),
    Attack("disk", "sparse file by seek", "f = open('s', 'wb')\nf.seek(2**40)\nf.write(b'x')\nf.flush()\nprint('PWNED')"),
    Attack("disk", "allocate", "import os\nf = os.open('s', os.O_RDWR | os.O_CREAT)\nos.posix_fallocate(f, 0, 2**32)\nprint('PWNED')"),
    Attack("disk", "many files", "for i in range(300):\n  f = open(f'f{i}', 'wb')\n  f.write(b'x' * 5_000_000); f.close()\nprint('PWNED 1.5 GB')", 4.0),
    Attack("disk", "many directories", "import os\nfor i in range(50000): os.mkdir(f'd{i}')\nprint('PWNED')", 4.0),
    Attack("disk", "deep tree", "import os\nfor i in range(3000):\n  os.mkdir('d')\n  os.chdir('d')"),
    Attack("disk", "deep tree of long names", "import os\nfor i in range(300):\n  os.mkdir('n' * 250)\n  os.chdir('n' * 250)\nos.mkdir('end', 0)"),
    Attack("disk", "locked directories", "import os\nos.makedirs('a/b/c')\nopen('a/b/f', 'w').close()\nos.umask(0o777)\nos.mkdir('a/b/d')\nos.mkdir('z', 0)"),
    Attack("disk", "odd names", "import os\nfor n in (b'\\n', b'\\xff\\xfe', b'-rf', b' ', b'.lifted-0', b'*'): os.makedirs(n + b'/.lifted-1/' + n)"),
    Attack("disk", "deleted but open", "import os\nk = []\nfor i in range(50):\n  f = open('x', 'wb'); os.unlink('x'); f.write(b'x' * 30_000_000); f.flush(); k.append(f)\nprint('PWNED 1.5 GB')", 4.0),
    Attack("disk", "special files", "import os, socket\nos.mkfifo('p')\nos.mknod('r')\nos.symlink('/', 'root')\nos.symlink('loop', 'loop')"),
    Attack("disk", "core dump", "import os\nos.abort()"),
    Attack("disk", "hidden behind long names", "import os\nfor _ in range(45):\n  os.mkdir('n' * 100); os.chdir('n' * 100)\nfor i in range(50):\n  f = open(f'f{i}', 'wb'); f.write(b'x' * 30_000_000); f.close()\nprint('PWNED 1.5 GB')", 4.0),
    Attack("disk", "hidden in a locked directory", "import os\nos.mkdir('d')\nos.chdir('d')\nd = os.open('.', os.O_RDONLY)\nos.umask(0)\nfor i in range(50):\n  f = open(f'f{i}', 'wb'); f.write(b'x' * 30_000_000); f.close()\nprint('PWNED 1.5 GB')", 4.0),
    _program("disk", "hidden in descriptors of another table", """
import os, ctypes, threading, time
libc = ctypes.CDLL(None)
def f():
    if libc.syscall(436, 3, 2**31 - 1, 2) < 0: print('denied'); return
    for i in range(50):
        g = open(f'x{threading.get_ident()}', 'wb'); os.unlink(g.name); g.write(b'x' * 30_000_000); g.flush(); os.dup(g.fileno())
    print('PWNED 1.5 GB')
t = threading.Thread(target=f); t.start(); t.join()
""", 4.0),
    _program("disk", "hidden in mappings", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
for i in range(50):
    f = os.open('x', os.O_RDWR | os.O_CREAT)
    for _ in range(30): os.write(f, bytes(2**20))
    assert libc.mmap(None, ctypes.c_size_t(4096), 1, 2, f, ctypes.c_long(0)) != 2**64 - 1
    os.close(f)
    os.unlink('x')
print('PWNED 1.5 GB')
""", 6.0),
    _program("disk", "hidden in mappings behind many others", """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
os.mkdir('d')
page, size = ctypes.c_size_t(4096), 4096 * 50000
start = libc.mmap(None, ctypes.c_size_t(size), 1, 0x22, -1, ctypes.c_long(0))
for at in range(start, start + size, 8192): libc.mprotect(ctypes.c_void_p(at), page, 3)
for i in range(50):
    f = os.open('x', os.O_RDWR | os.O_CREAT)
    for _ in range(30): os.write(f, bytes(2**20))
    assert libc.mmap(None, page, 1, 2, f, ctypes.c_long(0)) != 2**64 - 1
    os.close(f)
    os.unlink('x')
print('PWNED 1.5 GB')
""", 6.0),
    _program("disk", "hidden by the end of the main thread", """
import ctypes, os, threading, time, platform
def fill():
    time.sleep(0.05)
    keep = []
    for i in range(50):
        f = os.open('x', os.O_RDWR | os.O_CREAT)
        os.unlink('x')
        for _ in range(30): os.write(f, bytes(2**20))
    print('PWNED 1.5 GB', flush=True)
    os._exit(0)
threading.Thread(target=fill).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)
""", 6.0),
    _program("disk", "hidden beside what vanishes", """
import os, threading
os.mkdir('d')
os.chdir('d')
def flicker():
    while True:
        for i in range(40):
            os.close(os.open(f'{i}', os.O_CREAT))
            os.unlink(f'{i}')
threading.Thread(target=flicker, daemon=True).start()
for i in range(50):
    f = os.open(f'f{i}', os.O_RDWR | os.O_CREAT)
    for _ in range(30): os.write(f, bytes(2**20))
    os.close(f)
print('PWNED 1.5 GB', flush=True)
os._exit(0)
""", 6.0),
    _program("disk", "hidden in a tree that moves", """
import ctypes, mmap, os, random, struct, threading
m = mmap.mmap(-1, 4096, prot=7)  # renames without end: for (from, to, name) in table: renameat(from, name, to, name)
m.write(bytes.fromhex('534154 4989fc 4c89e3 8b3b 83ffff 74f6 488b7308 8b5304 4c8b5308 b808010000 0f05 4883c310 ebe1'))
loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
name = ctypes.create_string_buffer(b'c')
moves, order = [], []
for _ in range(6):
    os.mkdir('p'); os.mkdir('q')
    moves.append((os.open('p', os.O_RDONLY), os.open('q', os.O_RDONLY)))
    os.mkdir('p/c'); os.chdir('p/c')
for _ in range(500):
    random.shuffle(moves)
    order += moves
    moves = [(b, a) for a, b in moves]
table = b''.join(struct.pack('iiQ', a, b, ctypes.addressof(name)) for a, b in [*order, (-1, -1)])
table = ctypes.create_string_buffer(table, len(table))
threading.Thread(target=loop, args=(ctypes.addressof(table),), daemon=True).start()
for i in range(50):
    f = os.open(f'f{i}', os.O_RDWR | os.O_CREAT)
    for _ in range(30): os.write(f, bytes(2**20))
    os.close(f)
print('PWNED 1.5 GB', flush=True)
os._exit(0)
""", 6.0),
    _program("disk", "all of the disk at once", """
import ctypes, os
f = os.open('x', os.O_RDWR | os.O_CREAT)
ctypes.CDLL(None).fallocate(f, 1, ctypes.c_long(0), ctypes.c_long(2**31))  # keeps the size, so no limit of size holds
print('PWNED' if os.fstat(f).st_blocks * 512 > 2**28 else 'denied')
"""),
    _program("disk", "nameless files", """
import ctypes, os
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for i in range(50):
    f = os.open('.', os.O_RDWR | os.O_TMPFILE)
    for _ in range(30): os.write(f, bytes(2**20))
    libc.mmap(None, ctypes.c_size_t(4096), 1, 2, f, ctypes.c_long(0))
    os.close(f)
print('PWNED 1.5 GB')
""", 6.0),
    # -- processes
    Attack("processes", "fork", "import os\nif os.fork() == 0: os._exit(0)\nprint('PWNED')"),
    Attack("processes", "fork bomb", "import os\nwhile True: os.fork()"),
    Attack("processes", "system", "import os\nr = os.system('echo PWNED')\nprint(r)"),
    Attack("processes", "subprocess", "import subprocess\nprint('PWNED', subprocess.run(['/bin/echo', 'x'], capture_output=True))"),
    Attack("processes", "posix_spawn", "import os\nprint('PWNED', os.posix_spawn('/bin/true', ['true'], {}))"),
    Attack("processes", "exec", "import os\nos.execv('/bin/echo', ['echo', 'PWNED'])"),
    Attack("processes", "exec of a library", "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(\"PWNED\")'])"),
    Attack("processes", "multiprocessing", "import multiprocessing as m\np = m.Process(target=print, args=('PWNED',))\np.start(); p.join()"),
    Attack("processes", "pty", "import pty\npty.fork()\nprint('PWNED')"),
    Attack("processes", "raw vfork", _LIBC + "r = sc('vfork')\nif r == 0: os._exit(0)\nprint('PWNED' if r > 0 else 'denied')"),
    Attack("processes", "raw clone", _LIBC + "r = sc('clone', 17, 0, 0, 0, 0)\nif r == 0: os._exit(0)\nprint('PWNED' if r > 0 else 'denied')"),
    Attack("processes", "raw clone3", _LIBC + "import struct\na = struct.pack('8Q', 0, 0, 0, 0, 17, 0, 0, 0)\nr = sc('clone3', a, 64)\nif r == 0: os._exit(0)\nprint('PWNED' if r > 0 else 'denied')"),
    Attack("processes", "clone into a namespace as a thread", _LIBC + "r = sc('clone', 0x10000 | 0x10000000 | 0x900, 0, 0, 0, 0)\nprint('PWNED' if r > 0 else 'denied')"),
    Attack("processes", "memfd and exec", "import os\nf = os.memfd_create('x')\nos.write(f, b'#!/bin/sh\\necho PWNED')\nos.execve(f, ['x'], {})"),
    _program("threads", "small threads from C", """
import ctypes, time
pt = ctypes.CDLL(None)
attr = ctypes.create_string_buffer(256)
pt.pthread_attr_init(attr)
for size in (131072, 16384): pt.pthread_attr_setstacksize(attr, size)  # the least that aarch64 and x86_64 take
fn = ctypes.cast(pt.pause, ctypes.c_void_p)
n = 0
t = ctypes.c_ulong()
while n < 4000 and pt.pthread_create(ctypes.byref(t), attr, fn, None) == 0: n += 1
print('PWNED' if n > 200 else 'few', n)
"""),
    Attack("threads", "pool", "from concurrent.futures import ThreadPoolExecutor\nimport time\nwith ThreadPoolExecutor(500) as p: list(p.map(time.sleep, [0.5] * 500))\nprint('PWNED')"),
    # -- signals and other processes
    Attack("signals", "kill the parent", "import os\nos.kill(os.getppid(), 9)\nprint('PWNED')"),
    Attack("signals", "kill the caller", "import os\nos.kill(@PID@, 9)\nprint('PWNED')"),
    Attack("signals", "kill the group", "import os\ntry: os.killpg(0, 9)\nexcept OSError: print('denied')\nos.kill(-os.getppid(), 9)"),
    Attack("signals", "probe processes", "import os\nfor p in range(1, 2000):\n  if p == os.getpid(): continue\n  try: os.kill(p, 0); print('PWNED', p); break\n  except OSError: pass"),
    _syscall("tgkill", "sc('tgkill', os.getppid(), os.getppid(), 9)"),
    _syscall("tkill", "sc('tkill', os.getppid(), 9)"),
    _syscall("sigqueue", "sc('rt_sigqueueinfo', os.getppid(), 9, bytes(128))"),
    _syscall("pidfd_send_signal", "sc('pidfd_send_signal', sc('pidfd_open', os.getppid(), 0), 9, 0, 0)"),
    _program("signals", "SIGIO owner", """
import fcntl, os, socket
a, b = socket.socketpair()
fcntl.fcntl(a, fcntl.F_SETOWN, os.getppid())
fcntl.fcntl(a, 10, 9)
fcntl.fcntl(a, fcntl.F_SETFL, fcntl.fcntl(a, fcntl.F_GETFL) | 0o20000)
b.send(b'x')
print('PWNED')
"""),
    _syscall("FIOSETOWN", "libc.ioctl(os.pipe()[0], 0x8901, ctypes.byref(ctypes.c_int(os.getppid())))"),
    _syscall("renice the parent", "libc.setpriority(0, os.getppid(), 19)", goal="== 0"),
    _syscall("pin the parent", "sc('sched_setaffinity', @PID@, 8, bytes([1] + [0] * 7))", goal="== 0"),
    _syscall("limit the parent", "sc('prlimit64', os.getppid(), 7, bytes(16), 0)", goal="== 0"),
    _syscall("read the parent's limits", "sc('prlimit64', os.getppid(), 7, 0, bytes(16))", goal="== 0"),
    _syscall("ptrace", "sc('ptrace', 16, os.getppid(), 0, 0)", goal="== 0"),
    _syscall("process_vm_readv", "sc('process_vm_readv', os.getppid(), bytes(16), 1, bytes(16), 1, 0)"),
    _syscall("pidfd_getfd", "sc('pidfd_getfd', sc('pidfd_open', os.getppid(), 0), 0, 0)"),
    _syscall("kcmp", "sc('kcmp', os.getpid(), os.getppid(), 0, 0, 0)"),
    _syscall("survive the parent", "libc.prctl(1, 0, 0, 0, 0)", goal="== 0"),
    Attack("signals", "a name in odd bytes", _LIBC + "libc.prctl(15, b'\\xff\\xfe) R 1\\n', 0, 0, 0)\nimport threading, time\nthreading.Thread(target=time.sleep, args=(0.1,)).start()\nopen('x', 'w').close()\ntime.sleep(0.1)"),
    Attack("signals", "a name in odd bytes at the time-out", _LIBC + "libc.prctl(15, b'\\xff) ', 0, 0, 0)\nwhile True: pass", 0.3),
    Attack("signals", "flags left on a shared descriptor", "import fcntl, os\nfcntl.fcntl(0, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK)\nfcntl.flock(0, fcntl.LOCK_EX)"),
    Attack("signals", "flags found on a shared descriptor", "import fcntl, os\nf = os.open('/dev/null', os.O_RDONLY)\nif fcntl.fcntl(0, fcntl.F_GETFL) & (os.O_APPEND | os.O_NONBLOCK): print('PWNED flags')\ntry: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept OSError as e: print('PWNED lock', e)"),
    Attack("signals", "a date left on the scratch directory", "import os\nos.utime('.', (77, 77))"),
    Attack("signals", "a date found on the scratch directory", "import os\nprint('PWNED' if os.stat('.').st_mtime == 77 else 'clean')"),
    _program("time", "spin after the main thread's end", """
import ctypes, threading, platform
def f():
    while True: pass
threading.Thread(target=f).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)
""", 0.5),
    _program("time", "sleep after the main thread's end", """
import ctypes, threading, time, platform
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)
""", 0.5),
    # -- reading
    Attack("files", "secret by relative path", "import os\nprint('PWNED', open(os.path.relpath('@HOME@/.ssh/id_rsa')).read())"),
    Attack("files", "secret through a link", "import os\nos.symlink('@HOME@/.ssh/id_rsa', 'l')\nprint('PWNED', open('l').read())"),
    Attack("files", "secret through a directory link", "import os\nos.symlink('@HOME@', 'h')\nprint('PWNED', open('h/.ssh/id_rsa').read())"),
    Attack("files", "list the home", "import os\nprint('PWNED', os.listdir('@HOME@'))"),
    Attack("files", "enter the home", "import os\nos.chdir('@HOME@')\nprint('PWNED', os.listdir('.'))"),
    Attack("files", "reopen a path handle", "import os\nf = os.open('@HOME@/.ssh/id_rsa', os.O_PATH)\nprint('PWNED', open(f'/proc/self/fd/{f}').read())"),
    Attack("files", "through /proc/self/root", "print('PWNED', open('/proc/self/root@HOME@/.ssh/id_rsa').read())"),
    Attack("files", "through the parent's root", "import os\nprint('PWNED', open(f'/proc/{os.getppid()}/root@HOME@/.ssh/id_rsa').read())"),
    Attack("files", "through the caller's cwd", "import os\nprint('PWNED', os.listdir('/proc/@PID@/cwd/'))"),
    Attack("files", "the caller's memory", "print('PWNED', open('/proc/@PID@/mem', 'rb').read(1))"),
    Attack("files", "the template's memory map", "import os\nprint('PWNED', open(f'/proc/{os.getppid()}/maps').read()[:50])"),
    Attack("files", "the caller's descriptors", "import os\nprint('PWNED', os.listdir('/proc/@PID@/fd'))"),
    Attack("files", "passwd and shadow", "for f in ('/etc/passwd', '/etc/shadow', '/etc/hosts', '/etc/hostname'):\n  try: print('PWNED', open(f).read()[:10])\n  except OSError as e: print(e)"),
    Attack("files", "kernel files", "for f in ('/proc/net/tcp', '/proc/version', '/proc/mounts', '/sys/kernel/notes', '/sys/class/net/lo/address'):\n  try: print('PWNED', open(f, 'rb').read()[:10])\n  except OSError as e: print(e)"),
    Attack("files", "root directory", "import os\nd = os.listdir('/')\nprint('PWNED' if 'home' in d or 'etc' in d and os.listdir('/etc') != ['alternatives'] else d)"),
    Attack("files", "wake a device", "import os\nfor d in ('/dev/ptmx', '/dev/tty', '/dev/fuse', '/dev/loop-control', '/dev/net/tun'):\n  try: print('PWNED', os.open(d, 3))\n  except OSError as e: print(e)"),
    Attack("files", "devices", "for d in ('/dev/mem', '/dev/kmsg', '/dev/tty', '/dev/vda', '/dev/sda', '/dev/fuse', '/dev/kvm', '/dev/ptmx', '/dev/shm'):\n  try: open(d, 'rb', 0); print('PWNED', d)\n  except OSError as e: print(e)"),
    Attack("files", "map a secret", "import numpy as np\nprint('PWNED', bytes(np.memmap('@HOME@/.ssh/id_rsa', mode='r'))[:5])"),
    Attack("files", "sendfile of a secret", "import os, socket\na, b = socket.socketpair()\nf = os.open('@HOME@/.ssh/id_rsa', 0)\nos.sendfile(a.fileno(), f, 0, 100)\nprint('PWNED', b.recv(100))"),
    Attack("files", "execfile", "import runpy\nprint('PWNED', runpy.run_path('@OUT@/canarymod.py'))"),
    Attack("files", "library from outside", "import ctypes\nctypes.CDLL('@OUT@/canarymod.py')\nprint('PWNED')"),
    Attack("files", "watch a directory", _LIBC + "f = libc.inotify_init()\nr = libc.inotify_add_watch(f, b'@HOME@', 0xfff)\nprint('PWNED' if f >= 0 and r >= 0 else 'denied')"),
    _syscall("file handles", "sc('open_by_handle_at', -100, bytes(16), 0)"),
    _syscall("openat2", "sc('openat2', -100, b'@HOME@/.ssh/id_rsa', bytes(24), 24)"),
    # -- writing
    Attack("files", "append outside", "open('@OUT@/keep', 'a').write('x')\nprint('PWNED')"),
    Attack("files", "truncate outside", "import os\nos.truncate('@OUT@/keep', 0)\nprint('PWNED')"),
    Attack("files", "truncate by a read-only open", "import os\nos.open('@OUT@/keep', os.O_RDONLY | os.O_TRUNC)\nprint('PWNED')"),
    Attack("files", "truncate without an access mode", "import os\nos.open('@OUT@/keep', 3 | os.O_TRUNC)\nprint('PWNED')"),
    Attack("files", "open without an access mode", "import os\nos.open('@HOME@/.ssh/id_rsa', 3)\nprint('PWNED')"),
    Attack("files", "truncate a library", "import os\nos.open(os.__file__, os.O_RDONLY | os.O_TRUNC)\nprint('PWNED')"),
    Attack("files", "write to a library", "import os\nopen(os.__file__, 'a').write('')\nprint('PWNED')"),
    Attack("files", "write beside a library", "import os\nopen(os.path.join(os.path.dirname(os.__file__), 'sbx_litter.py'), 'w')\nprint('PWNED')"),
    Attack("files", "chmod outside", "import os\nos.chmod('@OUT@/keep', 0o777)\nprint('PWNED')"),
    Attack("files", "chmod by a handle", "import os\nos.fchmod(os.open('@OUT@', os.O_RDONLY), 0o777)\nprint('PWNED')"),
    Attack("files", "chmod of a library", "import os\nos.chmod(os.__file__, 0o666)\nprint('PWNED')"),
    Attack("files", "chown outside", "import os\nos.chown('@OUT@/keep', os.getuid(), os.getgid())\nprint('PWNED')"),
    Attack("files", "touch outside", "import os\nos.utime('@OUT@/keep', (1, 1))\nprint('PWNED')"),
    Attack("files", "touch a library", "import os\nos.utime(os.__file__, (1, 1))\nprint('PWNED')"),
    Attack("files", "xattr outside", "import os\nos.setxattr('@OUT@/keep', 'user.x', b'y')\nprint('PWNED')"),
    Attack("files", "flags of a library", "import os, fcntl\nf = os.open(os.__file__, os.O_RDONLY)\nfcntl.ioctl(f, 0x40086602, bytes([0x40, 0, 0, 0, 0, 0, 0, 0]))\nprint('PWNED')"),
    Attack("files", "unlink outside", "import os\nos.unlink('@OUT@/keep')\nprint('PWNED')"),
    Attack("files", "rename outside", "import os\nos.rename('@OUT@/keep', '@OUT@/lost')\nprint('PWNED')"),
    Attack("files", "steal by rename", "import os\nos.rename('@OUT@/keep', 'k')\nprint('PWNED')"),
    Attack("files", "plant by rename", "import os\nopen('k', 'w').write('x')\nos.rename('k', '@OUT@/k')\nprint('PWNED')"),
    Attack("files", "directory outside", "import os\nos.mkdir('@OUT@/d')\nprint('PWNED')"),
    Attack("files", "link into outside", "import os\nopen('k', 'w')\nos.link('k', '@OUT@/k')\nprint('PWNED')"),
    Attack("files", "symlink outside", "import os\nos.symlink('/', '@OUT@/s')\nprint('PWNED')"),
    Attack("files", "write above scratch", "open('../sbx-litter', 'w')\nopen('../../sbx-litter', 'w')\nprint('PWNED')"),
    Attack("files", "other runs' scratch", "import os\nd = os.path.dirname(os.getcwd())\nprint('PWNED' if d != '/' and os.listdir(d) else 'x')"),
    Attack("files", "replace the scratch directory", "import os\nd = os.getcwd()\nos.chdir('/')\nos.rmdir(d)\nos.symlink('@OUT@', d)\nprint('PWNED')"),
    # -- network
    Attack("network", "tcp", "import socket\nsocket.create_connection(('127.0.0.1', @PORT@), 1)\nprint('PWNED')"),
    Attack("network", "udp", "import socket\nsocket.socket(2, 2).sendto(b'x', ('127.0.0.1', @PORT@))\nprint('PWNED')"),
    Attack("network", "listen", "import socket\ns = socket.socket()\ns.bind(('', 0)); s.listen()\nprint('PWNED')"),
    Attack("network", "families", "import socket\nfor f in (1, 2, 10, 16, 17, 38, 40, 44):\n  for t in (1, 2, 3, 5):\n    try: socket.socket(f, t); print('PWNED', f, t)\n    except OSError: pass"),
    Attack("network", "http", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:@PORT@/', timeout=1)\nprint('PWNED')"),
    Attack("network", "names", "import socket\nprint('PWNED', socket.getaddrinfo('localhost', 80))"),
    Attack("network", "asyncio", "import asyncio\nasyncio.run(asyncio.open_connection('127.0.0.1', @PORT@))\nprint('PWNED')"),
    Attack("network", "datagram pair to an abstract name", "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', '\\0sbx-canary-dgram-@PORT@')\nprint('PWNED')"),
    Attack("network", "message to a path", "import socket\na, b = socket.socketpair()\na.sendmsg([b'x'], [], 0, '\\0sbx-canary-dgram-@PORT@')\nprint('PWNED')"),
    Attack("network", "reconnect a pair", "import socket\na, b = socket.socketpair()\na.connect('\\0sbx-canary-@PORT@')\nprint('PWNED')"),
    Attack("network", "use inherited sockets", "import socket\nfor f in range(3, 64):\n  try: s = socket.socket(fileno=f); s.connect('\\0sbx-canary-@PORT@'); print('PWNED', f)\n  except OSError: pass"),
    _syscall("socketcall-free accept4", "sc('accept4', 3, 0, 0, 0)"),
    # -- kernel interfaces
    _syscall("io_uring", "sc('io_uring_setup', 8, bytes(120))"),
    _syscall("bpf", "sc('bpf', 0, bytes(72), 72)"),
    _syscall("perf_event_open", "sc('perf_event_open', bytes(112), 0, -1, -1, 0)"),
    _syscall("userfaultfd", "sc('userfaultfd', 1)"),
    _syscall("add_key", "sc('add_key', b'user', b'sbx', b'x', 1, -3)"),
    _syscall("keyctl", "sc('keyctl', 0, -3, 1)"),
    _syscall("unshare mounts", "libc.unshare(0x00020000)"),
    _syscall("unshare users", "libc.unshare(0x10000000)"),
    _syscall("setns", "libc.setns(0, 0)"),
    _syscall("mount", "libc.mount(b'tmpfs', b'.', b'tmpfs', 0, 0)"),
    _syscall("umount", "libc.umount2(b'/tmp', 2)"),
    _syscall("pivot_root", "sc('pivot_root', b'.', b'.')"),
    _syscall("open_tree", "sc('open_tree', -100, b'/', 1)"),
    _syscall("fsopen", "sc('fsopen', b'tmpfs', 0)"),
    _syscall("setuid", "libc.setuid(0)", goal="== 0"),
    _syscall("setgroups", "libc.setgroups(0, 0)", goal="== 0"),
    _syscall("capset", "sc('capset', bytes([0x22, 5, 8, 0x20, 0, 0, 0, 0]), b'\\xff' * 24)", goal="== 0"),
    _syscall("personality", "sc('personality', 0x0400000)"),
    _syscall("sethostname", "libc.sethostname(b'x', 1)", goal="== 0"),
    _syscall("settime", "libc.clock_settime(0, bytes(16))", goal="== 0"),
    _syscall("reboot", "libc.reboot(0x1234567)", goal="== 0"),
    _syscall("mlockall", "libc.mlockall(3)", goal="== 0"),
    _syscall("sync", "sc('syncfs', 1)", goal="== 0"),
    _syscall("second filter with a listener", "sc('seccomp', 1, 8, bytes([1, 0, 0, 0, 0, 0, 0, 0]) + bytes(8))"),
    _syscall("message queue", "libc.mq_open(b'/sbx', 0o102, 0o600, 0)"),
    _syscall("semaphore set", "sc('semget', 0, 1, 0o1600)"),
    _syscall("landlock undone", "sc('landlock_restrict_self', 3, 0)", goal="== 0"),
    _syscall("x32 table", "libc.syscall(0x40000000 + 57)"),
    _program("kernel", "32-bit system call", """
import ctypes, mmap, platform
assert platform.machine() == 'x86_64'
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex('53 b8 14 00 00 00 cd 80 5b c3'))
f = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print('PWNED', f())
"""),
    _program("kernel", "32-bit code", """
import ctypes, mmap, platform
assert platform.machine() == 'x86_64'
m = mmap.mmap(-1, 4096, flags=0x62, prot=7)  # in the low 4 GB
a = ctypes.addressof(ctypes.c_char.from_buffer(m))
m.write(b'\\x6a\\x23\\x68' + (a + 64).to_bytes(4, 'little') + b'\\x48\\xcb')  # far return into the 32-bit segment
m.seek(64)
m.write(bytes.fromhex('b8 02 00 00 00 cd 80 f4'))  # fork
ctypes.CFUNCTYPE(ctypes.c_long)(a)()
"""),
    _program("kernel", "x32 numbers", _LIBC + """
for n in range(0x40000000, 0x40000000 + 600):
    if sc(n, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 38: print('PWNED', hex(n))
"""),
    _program("kernel", "young and rare calls", _LIBC + """
rare = [29, 64, 68, 71, 101, 103, 165, 166, 175, 179, 206, 212, 237, 238, 248, 249, 250, 251, 253, 254, 272, 276, 278]
rare += [294, 298, 300, 301, 303, 304, 307, 308, 310, 311, 312, 313, 317, 320, 321, 322, 323, 329, 330, 331]
for n in rare + [*range(424, 435), 438, 440, *range(442, 449), *range(450, 480)]:
    ctypes.set_errno(0)
    if sc(n, 0, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() not in (1, 38): print('PWNED', n, ctypes.get_errno())
"""),
    _syscall("socket option", "libc.setsockopt(5, 1, 7, bytes(4), 4)", goal="== 0"),
    _program("kernel", "chroot climb", """
import os
os.mkdir('c')
os.chroot('c')
for _ in range(50): os.chdir('..')
os.chroot('.')
print('PWNED', os.listdir('.'))
"""),
    Attack("kernel", "device node", "import os, stat\nos.mknod('m', 0o600 | stat.S_IFCHR, os.makedev(1, 1))\nprint('PWNED')"),
    Attack("kernel", "block device node", "import os, stat\nos.mknod('b', 0o600 | stat.S_IFBLK, os.makedev(254, 0))\nprint('PWNED')"),
    Attack("kernel", "terminal injection", "import fcntl, os\nfor f in range(5):\n  try: fcntl.ioctl(f, 0x5412, b'x'); print('PWNED')\n  except OSError: pass"),
    # -- limits
    _program("limits", "raise every limit", """
import resource
for n in dir(resource):
    if n.startswith('RLIMIT_'):
        w = getattr(resource, n)
        s, h = resource.getrlimit(w)
        try: resource.setrlimit(w, (s, h)); print('PWNED', n)
        except (ValueError, OSError): pass
"""),
    _program("limits", "unlimited somewhere", """
import resource
for n in ('AS', 'CPU', 'FSIZE', 'NOFILE', 'CORE', 'MEMLOCK', 'MSGQUEUE', 'SIGPENDING'):
    s, h = resource.getrlimit(getattr(resource, 'RLIMIT_' + n, 0)) if hasattr(resource, 'RLIMIT_' + n) else (0, 0)
    if -1 in (s, h): print('PWNED', n, s, h)
"""),
    Attack("limits", "descriptors", "import os\nk = []\nwhile len(k) < 500: k.append(os.dup(0))\nprint('PWNED')"),
    Attack("limits", "raw setrlimit", _LIBC + "r = sc('setrlimit', 9, b'\\xff' * 16)\nprint('PWNED' if r == 0 else 'denied')"),
    # -- secrets
    Attack("secrets", "environment in C", _LIBC + "e = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, 'environ')\ni = 0\nwhile e[i]:\n  if (b'@E0@' + b'@E1@') in e[i]: print('PWNED')\n  i += 1"),
    Attack("secrets", "own environ file", "print('PWNED' if (b'@E0@' + b'@E1@') in open('/proc/self/environ', 'rb').read() else 'clean')"),
    Attack("secrets", "every object", "import gc\nprint('PWNED' if any(''.join(['@E0@', '@E1@']) in o for o in gc.get_objects() if isinstance(o, (dict, list, tuple)) and len(o) < 10000 for o in [repr(list(o))[:10000]]) else 'clean')"),
    Attack("secrets", "descriptors left open", "import os\nfor f in range(4, 64):\n  try: print('PWNED', f, os.read(f, 10))\n  except OSError: pass"),
    # -- the sandbox itself
    Attack("machinery", "exit codes of the sandbox", "import os\nos._exit(70)"),
    Attack("machinery", "report memory", _CHANNEL + "s.send(b'M')"),
    Attack("machinery", "report a failure", _CHANNEL + "s.send(b'Efailed')\ns.send(b'E')\nos._exit(70)"),
    Attack("machinery", "report nothing", _CHANNEL + "s.send(b'')\ns.send(b'')\nos._exit(70)"),
    Attack("machinery", "report too much", _CHANNEL + "s.setblocking(False)\nfor n in (10**5, 2 * 10**5): s.send(b'E' * n)"),
    Attack("machinery", "flood the channel", _CHANNEL + "s.setblocking(False)\ntry:\n  while True: s.send(b'E' * 1000)\nexcept OSError as e: print(e)"),
    Attack("machinery", "flood the channel, then fail", _CHANNEL + "s.setblocking(False)\ntry:\n  while True: s.send(b'E')\nexcept OSError: s.setblocking(True)\nbytearray(10**11)", 0.5),
    Attack("machinery", "descriptors into the channel", _CHANNEL + "for _ in range(10): socket.send_fds(s, [b'R'], [0, 1, 2])\nprint('PWNED')"),
    Attack("machinery", "close the channel", _CHANNEL + "s.close()\nwhile True: pass", 0.5),
    Attack("machinery", "listen on the channel", _CHANNEL + "print('PWNED', s.recv(1))", 0.5),
    Attack("machinery", "shut the channel down", _CHANNEL + "s.shutdown(2)"),
    Attack("machinery", "output over the channel", _CHANNEL + "os.dup2(1, s.fileno())\nprint(1)"),
    Attack("machinery", "reconnect the channel", _CHANNEL + "s.connect('\\0sbx-canary-@PORT@')\nprint('PWNED')"),
    Attack("machinery", "options of the channel", _CHANNEL + "s.setsockopt(1, 16, 1)\nprint('PWNED')"),
    Attack("machinery", "patch the sandbox", "import gc, types, sys\nfor m in list(sys.modules.values()):\n  if getattr(m, '__name__', '').startswith('agentic_gym'):\n    for k, v in list(vars(m).items()):\n      if isinstance(v, types.FunctionType): setattr(m, k, lambda *a, **k: 70)"),
    Attack("machinery", "climb the stack", "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nprint(len(f.f_locals))\nfor k in list(f.f_globals): f.f_globals[k] = None"),
    Attack("machinery", "break builtins", "import builtins\nfor n in ('print', 'repr', 'open', 'isinstance', 'len', 'BaseException', 'Exception'): setattr(builtins, n, None)"),
    Attack("machinery", "break os", "import os\nos._exit = None\nos.write = None"),
    Attack("machinery", "poison json and sys", "import sys, json\njson.loads = json.dumps = None\nsys.modules.clear()\nsys.exit(0)"),
    Attack("machinery", "exception without end", "def f(n):\n  try: f(n + 1)\n  except RecursionError as e: raise ValueError from e\nf(0)"),
    Attack("machinery", "signal itself", "import os\nos.kill(os.getpid(), 9)"),
    Attack("machinery", "null bytes", "exec('\\0')"),
    Attack("machinery", "audit hook", "import sys\nsys.addaudithook(lambda *a: (_ for _ in ()).throw(SystemExit(70)))\nopen('x')"),
    Attack("machinery", "trace hook", "import sys\nsys.settrace(lambda *a: 1/0)\ndef f(): pass\nf()"),
    Attack("machinery", "profile hook in the exit", "import sys, threading\nthreading.setprofile(lambda *a: 1/0)\nsys.setprofile(lambda *a: 1/0)"),
    Attack("machinery", "stdin", "import sys\nprint('PWNED' if sys.stdin.read() else 'empty')"),
)  # fmt: skip
