// expects: any
function f() {
    for (const l of Intl.supportedValuesOf("timeZone")) new Date(0).toLocaleString("ar-u-nu-thai", { timeZone: l });
    getContext().getResponse().setBody(new Intl.Collator("de").compare("a", "b"));
}
