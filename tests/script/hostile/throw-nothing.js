// expects: fault Exception = undefined
function f() {
    throw undefined;
}
