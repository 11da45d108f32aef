// expects: done [400,400,true,true]
function f() {
    const tries = [5, "x", { pageSize: NaN, continuation: {}, enableScan: "yes" }, { pageSize: -Infinity, get continuation() { return "x".repeat(1e6); } }];
    getContext().getResponse().setBody(tries.map((options) => {
        try { return __.readDocuments(__.getSelfLink(), options, () => {}); } catch (e) { return e.number; }
    }));
}
