// expects: done ["SyntaxError",400,400,400,"TypeError",400,400]
function f() {
    const tries = ["{", null, 5, () => 1, { x: 1n }, Symbol("s"), undefined];
    getContext().getResponse().setBody(tries.map((body) => {
        try { return __.createDocument(__.getSelfLink(), body); } catch (e) { return e.number || e.name; }
    }));
}
