// expects: any
function f() {
    let a = {};
    for (let i = 0; i < 30000; i++) a = { a };
    getContext().getResponse().setBody(a);
}
