package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// collector walks through one declaration and records possible mutants.
type collector struct {
	*source
	file *sourceFile
	fn   *ast.FuncDecl
	out  []*mutant
}

// listMutants lists all possible mutants in all files that are not generated.
func (s *source) listMutants() []*mutant {
	var all []*mutant
	for _, f := range s.files {
		if ast.IsGenerated(f.tree) {
			continue
		}
		for _, decl := range f.tree.Decls {
			c := collector{source: s, file: f}
			if fn, ok := decl.(*ast.FuncDecl); ok {
				if fn.Body == nil || recovers(fn) {
					continue
				}
				c.fn = fn
				ast.Inspect(fn.Body, c.visit)
			} else {
				ast.Inspect(decl, c.visit)
			}
			all = append(all, c.out...)
		}
	}
	seen := map[string]int{}
	for _, m := range all {
		seen[m.id]++
		if k := seen[m.id]; k > 1 {
			m.id = fmt.Sprintf("%s #%d", m.id, k)
		}
	}
	return all
}

// recovers reports whether a function calls recover. recover works only in the deferred function itself, and a mutated
// copy would be called one level deeper.
func recovers(fn *ast.FuncDecl) (found bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok {
			name, plain := call.Fun.(*ast.Ident)
			found = found || plain && name.Name == "recover"
		}
		return !found
	})
	return found
}

// becomes maps operators to other operators that a programmer could confuse them with.
var becomes = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.AND}, token.AND_NOT: {token.AND},
	token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.INC: {token.DEC}, token.DEC: {token.INC},
	token.ADD_ASSIGN: {token.SUB_ASSIGN, token.ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN, token.ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN}, token.REM_ASSIGN: {token.ASSIGN},
	token.AND_ASSIGN: {token.OR_ASSIGN}, token.OR_ASSIGN: {token.ASSIGN}, token.XOR_ASSIGN: {token.ASSIGN},
	token.SHL_ASSIGN: {token.SHR_ASSIGN}, token.SHR_ASSIGN: {token.SHL_ASSIGN},
}

func (c *collector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.BinaryExpr:
		c.operator(n, n.OpPos, n.Op)
		c.dropOperand(n)
	case *ast.IncDecStmt:
		c.operator(n, n.TokPos, n.Tok)
	case *ast.AssignStmt:
		c.operator(n, n.TokPos, n.Tok)
	case *ast.IfStmt:
		c.negate(n.Cond)
	case *ast.ForStmt:
		c.negate(n.Cond)
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			c.replace(n, n.Pos(), n.X.Pos(), "")
		}
	case *ast.BasicLit:
		c.literal(n)
	case *ast.Ident:
		c.useConstant(n)
	case *ast.CallExpr:
		c.swapArguments(n)
	case *ast.ReturnStmt:
		c.dropError(n)
	case *ast.BlockStmt:
		c.removeStatement(n.List)
	case *ast.CaseClause:
		c.removeStatement(n.Body)
	case *ast.CommClause:
		c.removeStatement(n.Body)
	case *ast.SelectorExpr:
		ast.Inspect(n.X, c.visit)
		c.useConstant(n.Sel)
		return false
	}
	return true
}

// replace records a mutant that replaces the source text between two positions inside a node.
func (c *collector) replace(in ast.Node, from, to token.Pos, text string) {
	file := c.fset.File(in.Pos())
	start, end := file.Offset(from), file.Offset(to)
	before, after := c.file.text[file.Offset(in.Pos()):start], c.file.text[end:file.Offset(in.End())]
	was := string(before) + string(c.file.text[start:end]) + string(after)
	c.note(in, edit{start, end, text}, short(was)+" → "+short(string(before)+text+string(after)))
}

func (c *collector) note(in ast.Node, e edit, change string) {
	where := "package"
	if c.fn != nil {
		where = functionName(c.fn)
	}
	c.out = append(c.out, &mutant{id: where + ": " + change, line: c.fset.Position(in.Pos()).Line, file: c.file, fn: c.fn, edit: e})
}

// short shortens source text to one line by cutting out the middle.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 90 {
		return string(runes[:44]) + "…" + string(runes[len(runes)-44:])
	}
	return text
}

func (c *collector) operator(in ast.Node, at token.Pos, op token.Token) {
	for _, other := range becomes[op] {
		c.replace(in, at, at+token.Pos(len(op.String())), other.String())
	}
}

// dropOperand records mutants that keep only one of two operands. The remaining operand must have the type of the whole
// expression. The right operand of a shift is never kept alone.
func (c *collector) dropOperand(n *ast.BinaryExpr) {
	whole := c.info.TypeOf(n)
	alone := func(x ast.Expr) bool {
		t := c.info.TypeOf(x)
		return t != nil && whole != nil && types.Identical(t, whole)
	}
	if alone(n.X) {
		c.replace(n, n.X.End(), n.End(), "")
	}
	if alone(n.Y) && n.Op != token.SHL && n.Op != token.SHR {
		c.replace(n, n.Pos(), n.Y.Pos(), "")
	}
}

func (c *collector) negate(cond ast.Expr) {
	if cond == nil {
		return
	}
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op.Precedence() == token.EQL.Precedence() {
		return // the other operator is equivalent to the negation
	}
	file := c.fset.File(cond.Pos())
	c.replace(cond, cond.Pos(), cond.End(), "!("+string(c.file.text[file.Offset(cond.Pos()):file.Offset(cond.End())])+")")
}

func (c *collector) literal(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		v := constant.MakeFromLiteral(n.Value, n.Kind, 0)
		one := constant.MakeInt64(1)
		c.replace(n, n.Pos(), n.End(), constant.BinaryOp(v, token.ADD, one).ExactString())
		c.replace(n, n.Pos(), n.End(), constant.BinaryOp(v, token.SUB, one).ExactString())
	case token.FLOAT:
		c.replace(n, n.Pos(), n.End(), "("+n.Value+" + 1)")
		c.replace(n, n.Pos(), n.End(), "("+n.Value+" * 1.01)")
	}
}

// useConstant records mutants that change the use of a constant.
func (c *collector) useConstant(n *ast.Ident) {
	known, ok := c.info.Uses[n].(*types.Const)
	if !ok || n.Name == "iota" {
		return
	}
	switch known.Val().Kind() {
	case constant.Bool:
		if known.Parent() == types.Universe {
			c.replace(n, n.Pos(), n.End(), map[string]string{"true": "false", "false": "true"}[n.Name])
		}
	case constant.Int, constant.Float:
		// A selector's package precedes the name, so the sum is added after it.
		c.out = append(c.out, c.addOne(n))
	}
}

// addOne returns a mutant that replaces a constant with (NAME + 1). The parentheses preserve the precedence.
func (c *collector) addOne(n *ast.Ident) *mutant {
	file := c.fset.File(n.Pos())
	start := file.Offset(n.Pos())
	for start > 0 && strings.ContainsRune("._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", rune(c.file.text[start-1])) {
		start--
	}
	end := file.Offset(n.End())
	name := string(c.file.text[start:end])
	where := "package"
	if c.fn != nil {
		where = functionName(c.fn)
	}
	return &mutant{
		id: where + ": " + name + " → " + name + " + 1", line: c.fset.Position(n.Pos()).Line, file: c.file, fn: c.fn,
		edit: edit{start, end, "(" + name + " + 1)"},
	}
}

// symmetric lists functions whose arguments may be in any order, and packages that only format text.
var symmetric = map[string]bool{
	"min": true, "max": true, "bits.Add64": true, "bits.Mul64": true, "bytes.Equal": true, "slices.Equal": true,
	"errors.Join": true, "fmt": true,
}

// swapArguments records mutants that exchange adjacent arguments of the same type.
func (c *collector) swapArguments(call *ast.CallExpr) {
	name := types.ExprString(call.Fun)
	pkg, _, _ := strings.Cut(name, ".")
	if symmetric[name] || symmetric[pkg] {
		return
	}
	file := c.fset.File(call.Pos())
	text := func(from, to token.Pos) string { return string(c.file.text[file.Offset(from):file.Offset(to)]) }
	for i := range len(call.Args) - 1 {
		a, b := call.Args[i], call.Args[i+1]
		ta, tb := c.info.TypeOf(a), c.info.TypeOf(b)
		if ta == nil || tb == nil || !types.Identical(ta, tb) || text(a.Pos(), a.End()) == text(b.Pos(), b.End()) {
			continue
		}
		if call.Ellipsis != token.NoPos && i+1 == len(call.Args)-1 {
			continue
		}
		c.replace(call, a.Pos(), b.End(), text(b.Pos(), b.End())+text(a.End(), b.Pos())+text(a.Pos(), a.End()))
	}
}

// dropError records mutants that return nil instead of an error.
func (c *collector) dropError(n *ast.ReturnStmt) {
	for _, r := range n.Results {
		t := c.info.TypeOf(r)
		if name, ok := r.(*ast.Ident); ok && name.Name == "nil" || t == nil || !types.IsInterface(t) || t.String() != "error" {
			continue
		}
		c.replace(n, r.Pos(), r.End(), "nil")
	}
}

// removeStatement records mutants that remove one statement. Declarations are not removed, because the code would not
// compile without them.
func (c *collector) removeStatement(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.BranchStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.IfStmt:
			if s.Else != nil {
				continue
			}
		default:
			continue
		}
		file := c.fset.File(s.Pos())
		start, end := file.Offset(s.Pos()), file.Offset(s.End())
		c.note(s, edit{start, end, ""}, "without "+short(string(c.file.text[start:end])))
	}
}
