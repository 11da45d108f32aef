// expects: fault
function f() {
    let a = [];
    for (let i = 0; i < 1000; i++) a = [a];
    getContext().getResponse().setBody(a);
}
