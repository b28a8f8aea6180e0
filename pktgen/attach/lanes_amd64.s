//go:build !purego

#include "textflag.h"

// Four values at a time, with what every amd64 processor has.

// func laneBlocks(dst *uint32, src *byte, blocks int, scale, rounding float64, most uint32) (left int)
TEXT ·laneBlocks(SB), NOSPLIT, $0-56
	MOVQ     dst+0(FP), DI
	MOVQ     src+8(FP), SI
	MOVQ     blocks+16(FP), CX
	MOVSD    scale+24(FP), X8
	UNPCKLPD X8, X8
	MOVSD    rounding+32(FP), X9
	UNPCKLPD X9, X9
	MOVL     most+40(FP), AX
	MOVQ     AX, X10
	PSHUFD   $0, X10, X10
	PXOR     X11, X11
	JMP      test

loop:
	MOVOU    (SI), X0
	CVTPS2PD X0, X1
	PSHUFD   $0x0e, X0, X2
	CVTPS2PD X2, X2
	MULPD    X8, X1
	MULPD    X8, X2
	ADDPD    X9, X1
	ADDPD    X9, X2
	SHUFPS   $0x88, X2, X1 // the low halves: the lanes
	PSLLL    $1, X0        // without the sign
	MOVO     X0, X3
	PCMPEQL  X11, X3       // values that are 0
	MOVO     X1, X4
	PCMPEQL  X11, X4       // lanes that are 0
	PANDN    X4, X3        // values that vanished
	PSRLL    $1, X0
	PCMPGTL  X10, X0       // large values
	POR      X3, X0
	MOVMSKPS X0, AX
	TESTL    AX, AX
	JNZ      out
	MOVOU    X1, (DI)
	ADDQ     $16, DI
	ADDQ     $16, SI
	DECQ     CX

test:
	TESTQ CX, CX
	JNZ   loop

out:
	MOVQ CX, left+48(FP)
	RET

// func valueBlocks(dst *byte, src *uint32, blocks int, scale float64) (left int)
TEXT ·valueBlocks(SB), NOSPLIT, $0-40
	MOVQ     dst+0(FP), DI
	MOVQ     src+8(FP), SI
	MOVQ     blocks+16(FP), CX
	MOVSD    scale+24(FP), X8
	UNPCKLPD X8, X8
	PCMPEQL  X9, X9
	PSRLL    $1, X9      // the upper end of the range
	MOVL     $0x80000002, AX
	MOVQ     AX, X10
	PSHUFD   $0, X10, X10 // the least value above the lower end
	JMP      test

loop:
	MOVOU    (SI), X0
	MOVO     X9, X3
	PCMPEQL  X0, X3
	MOVO     X10, X4
	PCMPGTL  X0, X4
	POR      X4, X3
	MOVMSKPS X3, AX
	TESTL    AX, AX
	JNZ      out
	CVTPL2PD X0, X1
	PSHUFD   $0x0e, X0, X2
	CVTPL2PD X2, X2
	DIVPD    X8, X1
	DIVPD    X8, X2
	CVTPD2PS X1, X1
	CVTPD2PS X2, X2
	MOVLHPS  X2, X1
	MOVOU    X1, (DI)
	ADDQ     $16, DI
	ADDQ     $16, SI
	DECQ     CX

test:
	TESTQ CX, CX
	JNZ   loop

out:
	MOVQ CX, left+32(FP)
	RET
