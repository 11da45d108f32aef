// expects: fault Exception = Symbol(s)
function f() {
    throw Symbol("s");
}
