//go:build !purego

#include "textflag.h"

// Eight lanes at a time, with what every amd64 processor has.

// func floatBlocks(dst, src *uint32, blocks int)
TEXT ·floatBlocks(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	JMP  test
loop:
	MOVUPS (DI), X0
	MOVUPS 16(DI), X1
	MOVUPS (SI), X2
	MOVUPS 16(SI), X3
	ADDPS  X2, X0
	ADDPS  X3, X1
	MOVUPS X0, (DI)
	MOVUPS X1, 16(DI)
	ADDQ   $32, DI
	ADDQ   $32, SI
	DECQ   CX
test:
	TESTQ CX, CX
	JNZ   loop
	RET

// func wordBlocks(dst, src *uint32, blocks int)
TEXT ·wordBlocks(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	JMP  test
loop:
	MOVOU (DI), X0
	MOVOU 16(DI), X1
	MOVOU (SI), X2
	MOVOU 16(SI), X3
	PADDL X2, X0
	PADDL X3, X1
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	ADDQ  $32, DI
	ADDQ  $32, SI
	DECQ  CX
test:
	TESTQ CX, CX
	JNZ   loop
	RET

// A lane overflows where the sum's sign differs from both addends' signs.
#define SUMS \
	MOVOU (DI), X0    \
	MOVOU 16(DI), X1  \
	MOVOU (SI), X2    \
	MOVOU 16(SI), X3  \
	MOVO  X0, X4      \
	MOVO  X1, X5      \
	PADDL X2, X4      \
	PADDL X3, X5

#define OVERFLOWS \
	PXOR X4, X0 \
	PXOR X5, X1 \
	PXOR X4, X2 \
	PXOR X5, X3 \
	PAND X2, X0 \
	PAND X3, X1 \
	POR  X1, X0

#define KEEP \
	MOVOU X4, (DI)   \
	MOVOU X5, 16(DI) \
	ADDQ  $32, DI    \
	ADDQ  $32, SI    \
	DECQ  CX

// func saturatingBlocks(dst, src *uint32, blocks int) (left int)
TEXT ·saturatingBlocks(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	JMP  test
loop:
	SUMS
	OVERFLOWS
	MOVMSKPS X0, AX
	TESTL    AX, AX
	JNZ      out
	KEEP
test:
	TESTQ CX, CX
	JNZ   loop
out:
	MOVQ CX, left+24(FP)
	RET

// func stickyBlocks(dst, src *uint32, blocks int) (left int)
TEXT ·stickyBlocks(SB), NOSPLIT, $0-32
	MOVQ    dst+0(FP), DI
	MOVQ    src+8(FP), SI
	MOVQ    blocks+16(FP), CX
	PCMPEQL X8, X8
	PSRLL   $1, X8          // MaxInt32
	MOVL    $0x80000002, AX // the least that is above the rail below
	MOVQ    AX, X9
	PSHUFD  $0, X9, X9
	JMP     test
loop:
	SUMS
	MOVO    X0, X6
	MOVO    X1, X7
	PCMPEQL X8, X6
	PCMPEQL X8, X7
	POR     X7, X6
	MOVO    X9, X7
	PCMPGTL X0, X7
	POR     X7, X6
	MOVO    X9, X7
	PCMPGTL X1, X7
	POR     X7, X6
	OVERFLOWS
	POR      X6, X0
	MOVMSKPS X0, AX
	TESTL    AX, AX
	JNZ      out
	KEEP
test:
	TESTQ CX, CX
	JNZ   loop
out:
	MOVQ CX, left+24(FP)
	RET
