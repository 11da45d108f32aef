// expects: done [2,3,4]
function f() {
    getContext().getResponse().setBody([new Function("return 2")(), eval("1 + 2"), (0, eval)("4")]);
}
