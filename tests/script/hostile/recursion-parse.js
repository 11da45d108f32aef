// expects: any
function f() {
    eval("(".repeat(1e6));
}
