// expects: fault Exception = Error: got
function f() {
    getContext().getResponse().setBody({ get x() { throw new Error("got"); } });
}
