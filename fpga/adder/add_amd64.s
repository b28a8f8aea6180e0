//go:build !purego

#include "textflag.h"

// Eight lanes at a time, with what every amd64 processor has.

#define ARGUMENTS \
	MOVQ dst+0(FP), DI    \
	MOVQ src+8(FP), SI    \
	MOVQ blocks+16(FP), CX

#define LOAD \
	MOVOU (DI), X0   \
	MOVOU 16(DI), X1 \
	MOVOU (SI), X2   \
	MOVOU 16(SI), X3

// The sums in X4 and X5, and what was there before in X0 and X1.
#define SUMS(ADD) \
	LOAD        \
	MOVO X0, X4 \
	MOVO X1, X5 \
	ADD  X2, X4 \
	ADD  X3, X5

#define KEEP \
	MOVOU X4, (DI)   \
	MOVOU X5, 16(DI) \
	ADDQ  $32, DI    \
	ADDQ  $32, SI    \
	DECQ  CX

// All blocks.
#define BLOCKS(ADD) \
	ARGUMENTS     \
	JMP   test    \
loop:             \
	SUMS(ADD)     \
	KEEP          \
test:             \
	TESTQ CX, CX  \
	JNZ   loop    \
	RET

// Blocks up to one with a lane whose bit at the top of X0 or X1, as CHECK leaves them, is set.
#define BLOCKS_UNTIL(CHECK) \
	JMP      test      \
loop:                  \
	SUMS(PADDL)        \
	CHECK              \
	POR      X1, X0    \
	MOVMSKPS X0, AX    \
	TESTL    AX, AX    \
	JNZ      out       \
	KEEP               \
test:                  \
	TESTQ    CX, CX    \
	JNZ      loop      \
out:                   \
	MOVQ     CX, left+24(FP) \
	RET

// A lane overflows where the sum's sign differs from both addends' signs.
#define OVERFLOWS \
	PXOR X4, X0 \
	PXOR X5, X1 \
	PXOR X4, X2 \
	PXOR X5, X3 \
	PAND X2, X0 \
	PAND X3, X1

// A lane stands at a rail where it is MaxInt32 (X8), or where what is least above the rail below (X9) is greater.
#define RAILS_OR_OVERFLOWS \
	MOVO    X8, X6 \
	PCMPEQL X0, X6 \
	MOVO    X9, X7 \
	PCMPGTL X0, X7 \
	POR     X7, X6 \
	MOVO    X8, X7 \
	PCMPEQL X1, X7 \
	POR     X7, X6 \
	MOVO    X9, X7 \
	PCMPGTL X1, X7 \
	POR     X7, X6 \
	OVERFLOWS      \
	POR     X6, X0

// func floatBlocks(dst, src *uint32, blocks int)
TEXT ·floatBlocks(SB), NOSPLIT, $0-24
	BLOCKS(ADDPS)

// func wordBlocks(dst, src *uint32, blocks int)
TEXT ·wordBlocks(SB), NOSPLIT, $0-24
	BLOCKS(PADDL)

// func saturatingBlocks(dst, src *uint32, blocks int) (left int)
TEXT ·saturatingBlocks(SB), NOSPLIT, $0-32
	ARGUMENTS
	BLOCKS_UNTIL(OVERFLOWS)

// func stickyBlocks(dst, src *uint32, blocks int) (left int)
TEXT ·stickyBlocks(SB), NOSPLIT, $0-32
	ARGUMENTS
	PCMPEQL X8, X8
	PSRLL   $1, X8
	MOVL    $0x80000002, AX
	MOVQ    AX, X9
	PSHUFD  $0, X9, X9
	BLOCKS_UNTIL(RAILS_OR_OVERFLOWS)
