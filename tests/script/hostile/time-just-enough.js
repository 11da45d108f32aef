// expects: any
function f() {
    const end = Date.now() + 140;
    while (Date.now() < end);
    getContext().getResponse().setBody(1);
}
