// expects: done [400,400,400,400,400,400,400]
function f() {
    const tries = [undefined, null, {}, "", "dbs/other/colls/other", __.getSelfLink() + "x", "x".repeat(1e6)];
    getContext().getResponse().setBody(tries.map((link) => {
        try { return __.createDocument(link, {}); } catch (e) { return e.number; }
    }));
}
