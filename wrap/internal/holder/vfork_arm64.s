#include "textflag.h"

// func vfork() (pid, errno uintptr)
//
// The child overwrites the stack of the parent, which waits. The return address is in R30, which
// both have.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-16
	MOVD $0x4111, R0 // CLONE_VM, CLONE_VFORK, SIGCHLD
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $220, R8 // clone
	SVC
	CMN  $4095, R0
	BCS  failed
	MOVD R0, pid+0(FP)
	MOVD $0, R1
	MOVD R1, errno+8(FP)
	RET
failed:
	NEG  R0, R0
	MOVD $0, R1
	MOVD R1, pid+0(FP)
	MOVD R0, errno+8(FP)
	RET
