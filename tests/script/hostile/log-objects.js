// expects: done 1
function f() {
    console.log({});
    console.log(null);
    console.log("%s %s %% %d", 1);
    try { console.log({ toString() { throw 1; } }); } catch (e) {}
    try { console.log(Symbol("s")); } catch (e) {}
    getContext().getResponse().setBody(1);
}
