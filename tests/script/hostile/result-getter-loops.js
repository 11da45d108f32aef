// expects: stopped
function f() {
    const body = {};
    getContext().getResponse().setBody(body);
    Object.defineProperty(body, "x", { enumerable: true, get() { for (;;); } });
}
