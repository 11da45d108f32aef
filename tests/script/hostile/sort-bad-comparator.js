// expects: any
function f() {
    const a = Array.from({ length: 1e5 }, (v, i) => i);
    a.sort(() => Math.random() - 0.5);
    a.sort((x) => { a.length = 0; a.push(x); return 1; });
    a.sort(() => ({ valueOf: () => NaN }));
    getContext().getResponse().setBody(1);
}
