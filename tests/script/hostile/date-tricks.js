// expects: done ["Invalid Date",null,8640000000000000]
function f() {
    Date.now = () => NaN;
    getContext().getResponse().setBody([String(new Date(NaN)), new Date(8.64e15 + 1), new Date(8.64e15).getTime()]);
    Date = null;
}
