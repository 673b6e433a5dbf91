#include "textflag.h"

// System calls of linux/amd64, and RLIMIT_AS.
#define SYS_write 1
#define SYS_getrlimit 97
#define SYS_exit_group 231
#define RLIMIT_AS 9

// func entry()
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	// The runtime's entry point expects the stack pointer as the kernel has set it.
	LEAQ	-16(SP), SI // struct rlimit, in the red zone
	MOVQ	$RLIMIT_AS, DI
	MOVQ	$SYS_getrlimit, AX
	SYSCALL
	MOVQ	-16(SP), CX // the current limit
	CMPQ	CX, $(1<<30)
	JCS	low
	JMP	_rt0_amd64_linux(SB)

low:
	MOVQ	$2, DI // stderr
	LEAQ	limitTooLow<>(SB), SI
	MOVQ	$87, DX
	MOVQ	$SYS_write, AX
	SYSCALL
	MOVQ	$125, DI
	MOVQ	$SYS_exit_group, AX
	SYSCALL

DATA limitTooLow<>+0(SB)/44, $"rdzv: cannot run: address-space limit too lo"
DATA limitTooLow<>+44(SB)/43, $"w: 2097152 kB needed (ulimit -v unlimited)\n"
GLOBL limitTooLow<>(SB), RODATA, $87
