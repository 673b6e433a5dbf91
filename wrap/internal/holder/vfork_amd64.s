#include "textflag.h"

// func vfork() (pid, errno uintptr)
//
// The child overwrites the stack of the parent, which waits. The return address is therefore in a
// register meanwhile.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ $0x4111, DI // CLONE_VM, CLONE_VFORK, SIGCHLD
	MOVQ $0, SI
	MOVQ $0, DX
	MOVQ $0, R10
	MOVQ $0, R8
	MOVQ $56, AX // clone
	POPQ R12
	SYSCALL
	PUSHQ R12
	CMPQ AX, $0xfffffffffffff001
	JCC  failed
	MOVQ AX, pid+0(FP)
	MOVQ $0, errno+8(FP)
	RET
failed:
	NEGQ AX
	MOVQ $0, pid+0(FP)
	MOVQ AX, errno+8(FP)
	RET
