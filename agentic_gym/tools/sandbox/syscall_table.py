"""Which system calls sandboxed code may make: names with their x86_64 and aarch64 numbers."""

from __future__ import annotations

from agentic_gym.tools.sandbox import kernel

_ALWAYS = """
read:0:63 write:1:64 close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62 mmap:9:222
mprotect:10:226 munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139
pread64:17:67 pwrite64:18:68 readv:19:65 writev:20:66 access:21:- pipe:22:- select:23:- sched_yield:24:124
mremap:25:216 msync:26:227 madvise:28:233 dup:32:23 dup2:33:- pause:34:- nanosleep:35:101
getitimer:36:102 alarm:37:- setitimer:38:103 getpid:39:172 sendfile:40:71 recvfrom:45:207
recvmsg:47:212 shutdown:48:210 getsockname:51:204 getpeername:52:205 getsockopt:55:209
exit:60:93 uname:63:160 fsync:74:82 fdatasync:75:83 ftruncate:77:46 getdents:78:- getcwd:79:17 chdir:80:49
fchdir:81:50 rename:82:- mkdir:83:- rmdir:84:- creat:85:- link:86:- unlink:87:- symlink:88:-
readlink:89:- umask:95:166 gettimeofday:96:169 getrlimit:97:163 getrusage:98:165 sysinfo:99:179
times:100:153 getuid:102:174 getgid:104:176 geteuid:107:175 getegid:108:177 setsid:112:157 getppid:110:173
getpgrp:111:- getgroups:115:158 getresuid:118:148 getresgid:120:150 getpgid:121:155 getsid:124:156
rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 sigaltstack:131:132 statfs:137:43
fstatfs:138:44 getpriority:140:141 arch_prctl:158:- gettid:186:178 readahead:187:213 time:201:-
futex:202:98 sched_getaffinity:204:123 sched_getparam:143:121 sched_getscheduler:145:120 epoll_create:213:-
getdents64:217:61 set_tid_address:218:96 restart_syscall:219:128 fadvise64:221:223 timer_create:222:107
timer_settime:223:110 timer_gettime:224:108 timer_getoverrun:225:109 timer_delete:226:111
clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115 exit_group:231:94 epoll_wait:232:-
epoll_ctl:233:21 waitid:247:95 wait4:61:260 mkdirat:258:34 newfstatat:262:79 unlinkat:263:35
renameat:264:38 linkat:265:37 symlinkat:266:36 readlinkat:267:78 faccessat:269:48 pselect6:270:72
ppoll:271:73 set_robust_list:273:99 epoll_pwait:281:22 timerfd_create:283:85 eventfd:284:- eventfd2:290:19
timerfd_settime:286:86 timerfd_gettime:287:87 signalfd:282:- signalfd4:289:74
epoll_create1:291:20 dup3:292:24 pipe2:293:59 preadv:295:69 pwritev:296:70 recvmmsg:299:243
renameat2:316:276 getrandom:318:278 membarrier:324:283 copy_file_range:326:285 preadv2:327:286
pwritev2:328:287 statx:332:291 rseq:334:293 faccessat2:439:439 epoll_pwait2:441:441
futex_waitv:449:449 mknod:133:- mknodat:259:33 flock:73:32 getcpu:309:168
"""

_ARGUMENTS_MATTER = """
open:2:- openat:257:56 sendto:44:206 socketpair:53:199 ioctl:16:29 fcntl:72:25 clone:56:220
prlimit64:302:261 prctl:157:167 close_range:436:436
"""

_LATER = "seccomp:317:277"
"""Open in the first filter, closed by the second, which it is needed to install."""

_TRUNCATE = "truncate:76:45"
"""Acts on a path: safe where Landlock (ABI 3) or a private root guards it."""

_METADATA = """
chmod:90:- fchmod:91:52 fchmodat:268:53 utime:132:- utimes:235:- utimensat:280:88 futimesat:261:-
"""
"""Landlock does not guard these: safe only under a private, read-only root."""

_ALLOCATE = "fallocate:285:47"
"""Takes any part of a disk at once, faster than anyone can look: safe only in a file system of fixed size."""

_ABSENT = "clone3:435:435 openat2:437:437 memfd_create:319:279"
"""Answered with ENOSYS, so that libc falls back to the older call, whose arguments a filter can see."""

_SENDMSG = "sendmsg:46:211"
"""Slots pass descriptors with it; children have nobody to pass any to."""

_SIGNALS = "kill:62:129 tgkill:234:131 rt_sigqueueinfo:129:138 rt_tgsigqueueinfo:297:240"
"""First argument is a process: only the caller itself may be named."""

_SETRLIMIT = "setrlimit:160:164"


def _numbers(text: str) -> dict[str, int]:
    column = 1 if kernel.MACHINE == "x86_64" else 2
    rows = (entry.split(":") for entry in text.split())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


ALWAYS = _numbers(_ALWAYS)
ARGUMENTS_MATTER = _numbers(_ARGUMENTS_MATTER)
LATER = _numbers(_LATER)
TRUNCATE = _numbers(_TRUNCATE)
METADATA = _numbers(_METADATA)
ALLOCATE = _numbers(_ALLOCATE)
ABSENT = _numbers(_ABSENT)
SIGNALS = _numbers(_SIGNALS)
SETRLIMIT = _numbers(_SETRLIMIT)
SENDMSG = _numbers(_SENDMSG)
NEWEST = 462
"""Numbers above this are younger than the table: ENOSYS."""
