// expects: any
function f() {
    getContext().getResponse().setBody(new Proxy({}, {
        ownKeys: () => Array.from({ length: 1e6 }, (v, i) => "k" + i),
        getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
    }));
}
