// expects: fault too large
function f() {
    getContext().getResponse().setBody(Array(1e6).fill("xxxxxx"));
}
