#include "textflag.h"

// System calls of linux/amd64.
#define SYS_write 1
#define SYS_clone 56
#define SYS_exit 60
#define SYS_getrlimit 97
#define SYS_futex 202
#define SYS_exit_group 231

#define RLIMIT_NPROC 6
#define RLIMIT_AS 9
#define EAGAIN 11

// CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD, CLONE_SYSVSEM, CLONE_CHILD_CLEARTID
#define THREAD 0x250f00
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

#define THREADS 32
#define THREADS_WATCHDOG 8
#define MANY_PROCESSES 16384

// func entry()
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	// The runtime's entry point expects the stack pointer as the kernel has set it.
	LEAQ	-16(SP), SI // struct rlimit, in the red zone
	MOVQ	$RLIMIT_AS, DI
	MOVQ	$SYS_getrlimit, AX
	SYSCALL
	LEAQ	limitTooLow<>(SB), SI
	MOVQ	$87, DX
	MOVQ	-16(SP), CX // the current limit
	CMPQ	CX, $(1<<30)
	JCS	fail

	LEAQ	-16(SP), SI
	MOVQ	$RLIMIT_NPROC, DI
	MOVQ	$SYS_getrlimit, AX
	SYSCALL
	MOVQ	-16(SP), CX
	CMPQ	CX, $MANY_PROCESSES
	JCC	start
	MOVQ	$THREADS, R12
	MOVQ	8(SP), BX // argv[0]
	TESTQ	BX, BX
	JEQ	try
	MOVQ	$0x7461772d767a6472, CX // "rdzv-wat", the watchdog
	CMPQ	CX, (BX)
	JNE	try
	MOVQ	$THREADS_WATCHDOG, R12

	// R12 threads wait at the same time, on this thread's stack, which they do not use. R13 counts
	// them. The kernel sets alive[R13] to 0 when such a thread has ended.
try:
	XORQ	R13, R13
	LEAQ	alive<>(SB), R14
clone:
	LEAQ	(R14)(R13*4), R10
	MOVL	$1, (R10)
	MOVQ	$THREAD, DI
	XORQ	SI, SI
	XORQ	DX, DX
	XORQ	R8, R8
	MOVQ	$SYS_clone, AX
	SYSCALL
	TESTQ	AX, AX
	JEQ	wait
	JLT	release
	INCQ	R13
	CMPQ	R13, R12
	JNE	clone

release:
	MOVQ	AX, R15
	LEAQ	released<>(SB), DI
	MOVL	$1, (DI)
	MOVQ	$FUTEX_WAKE, SI
	MOVQ	$THREADS, DX
	MOVQ	$SYS_futex, AX
	SYSCALL
join:
	TESTQ	R13, R13
	JEQ	joined
	LEAQ	-4(R14)(R13*4), DI
	MOVQ	$FUTEX_WAIT, SI
	MOVQ	$1, DX
	XORQ	R10, R10
	MOVQ	$SYS_futex, AX
	SYSCALL
	MOVL	-4(R14)(R13*4), AX
	TESTL	AX, AX
	JNE	join
	DECQ	R13
	JMP	join
joined:
	LEAQ	tooFewProcesses<>(SB), SI
	MOVQ	$133, DX
	CMPQ	R15, $-EAGAIN
	JEQ	fail
start:
	JMP	_rt0_amd64_linux(SB)

wait: // in the new thread, until all have been tried
	LEAQ	released<>(SB), DI
	MOVQ	$FUTEX_WAIT, SI
	XORQ	DX, DX
	XORQ	R10, R10
	MOVQ	$SYS_futex, AX
	SYSCALL
	MOVL	released<>(SB), AX
	TESTL	AX, AX
	JEQ	wait
	XORQ	DI, DI
	MOVQ	$SYS_exit, AX
	SYSCALL

fail: // with the message in SI, of length DX
	MOVQ	$2, DI // stderr
	MOVQ	$SYS_write, AX
	SYSCALL
	MOVQ	$125, DI
	MOVQ	$SYS_exit_group, AX
	SYSCALL

GLOBL alive<>(SB), NOPTR, $(4*THREADS)
GLOBL released<>(SB), NOPTR, $4

DATA limitTooLow<>+0(SB)/44, $"rdzv: cannot run: address-space limit too lo"
DATA limitTooLow<>+44(SB)/43, $"w: 2097152 kB needed (ulimit -v unlimited)\n"
GLOBL limitTooLow<>(SB), RODATA, $87

DATA tooFewProcesses<>+0(SB)/44, $"rdzv: cannot run: process limit too low: few"
DATA tooFewProcesses<>+44(SB)/44, $"er than 32 more processes and threads are al"
DATA tooFewProcesses<>+88(SB)/44, $"lowed (ulimit -u, or pids.max of the cgroup)"
DATA tooFewProcesses<>+132(SB)/1, $"\n"
GLOBL tooFewProcesses<>(SB), RODATA, $133
