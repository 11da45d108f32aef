// expects: fault
function f() {
    getContext().getResponse().setBody(new Proxy([], { get: (t, k) => (k === "length" ? Infinity : k === "toJSON" ? undefined : 1) }));
}
