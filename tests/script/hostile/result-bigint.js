// expects: fault
function f() {
    getContext().getResponse().setBody(1n);
}
