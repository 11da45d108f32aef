// expects: fault cyclic
function f() {
    const a = [];
    a.push(a);
    getContext().getResponse().setBody(a);
}
