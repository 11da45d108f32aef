// queries.js — queries written as JavaScript: __.filter, map, pluck, flatten, unwind, sortBy, sortByDescending, chain() … value().
//
// The functions run here, over pages of the container's items. A query without an order reads pages until it has enough results for one
// page, so its continuation is the server's. A query with an order must read all items first; its continuation counts results.

const SORTED = 'sorted:';

/** Stages form a linked list, from the last to the first. */
const stage = (before, work, sorts) => ({ __proto__: null, before, work, sorts: sorts || (before !== null && before.sorts) });

function applyStages(last, rows) {
    return last === null ? rows : last.work(applyStages(last.before, rows));
}

// ---- the stages ----

function keepEach(rows, choose) {
    const kept = [];
    for (let i = 0; i < rows.length; i++) {
        choose(rows[i], (row) => {
            kept[kept.length] = row;
        });
    }
    return kept;
}

const filterWith = (predicate) => (rows) =>
    keepEach(rows, (row, keep) => {
        if (predicate(row)) {
            keep(row);
        }
    });

const mapWith = (transform) => (rows) =>
    keepEach(rows, (row, keep) => {
        const made = transform(row);
        if (made !== undefined) {
            keep(made);
        }
    });

function flattenInto(row, levels, keep) {
    if (!isArray(row) || levels === 0) {
        keep(row);
        return;
    }
    for (let i = 0; i < row.length; i++) {
        flattenInto(row[i], levels - 1, keep);
    }
}

const flattenWith = (levels) => (rows) => keepEach(rows, (row, keep) => flattenInto(row, levels, keep));

const unwindWith = (inner, result) => (rows) =>
    keepEach(rows, (row, keep) => {
        const items = inner(row);
        for (let i = 0; isArray(items) && i < items.length; i++) {
            const made = result === undefined ? items[i] : result(row, items[i]);
            if (made !== undefined) {
                keep(made);
            }
        }
    });

const RANKS = { __proto__: null, undefined: 0, boolean: 2, number: 3, string: 4 };
const rankOf = (value) => (value === null ? 1 : isArray(value) ? 5 : (RANKS[typeof value] ?? 6));

function compareKeys(a, b) {
    const ranks = rankOf(a) - rankOf(b);
    return ranks !== 0 ? ranks : a < b ? -1 : a > b ? 1 : 0;
}

const sortWith = (keyOf, direction) => (rows) => {
    const keyed = [];
    for (let i = 0; i < rows.length; i++) {
        keyed[i] = { __proto__: null, key: keyOf(rows[i]), row: rows[i], at: i };
    }
    sortArray(keyed, (a, b) => direction * compareKeys(a.key, b.key) || a.at - b.at);
    for (let i = 0; i < keyed.length; i++) {
        keyed[i] = keyed[i].row;
    }
    return keyed;
};

// ---- running them ----

const pageSizeOf = (options) => (typeof options.pageSize === 'number' && options.pageSize !== 0 ? options.pageSize : PAGE_SIZE_DEFAULT);
const askPage = (size, continuation) => ask('list', selfLink, withOptions(pageText({ pageSize: size, continuation })));

function appendRows(rows, more) {
    for (let i = 0; i < more.length; i++) {
        rows[rows.length] = more[i];
    }
}

/** Reads pages until there are enough results, the container has no more items, or the server accepts no more calls. */
function gatherPages(query, first, size) {
    const rows = [];
    let page = first;
    for (;;) {
        const error = errorOf(page);
        if (error !== undefined) {
            throw error;
        }
        appendRows(rows, applyStages(query, own(page, 'body')));
        const continuation = own(page, 'continuation');
        const full = size > 0 && rows.length >= size;
        const next = continuation && !full ? askPage(size > 0 ? size - rows.length : -1, continuation) : null;
        if (next === null) {
            return { rows, options: optionsOf(page) };
        }
        page = next;
    }
}

function gatherSorted(query, first, size, from) {
    const all = gatherPages(null, first, -1);
    if (all.options.continuation) {
        fail(408, 'The script\'s budget ended before all items were read that have to be sorted.');
    }
    const rows = applyStages(query, all.rows);
    const end = size > 0 && from + size < rows.length ? from + size : rows.length;
    delete all.options.continuation;
    if (end < rows.length) {
        all.options.continuation = SORTED + end;
    }
    return { rows: sliceArray(rows, from, end), options: all.options };
}

function finishQuery(query, first, size, from, callback) {
    let result;
    try {
        result = query !== null && query.sorts ? gatherSorted(query, first, size, from) : gatherPages(query, first, size);
    } catch (error) {
        callback(error);
        return;
    }
    callback(undefined, result.rows, result.options);
}

/** Without a callback the results become the response's body. */
function toResponse(error, rows) {
    if (error !== undefined) {
        throw error;
    }
    if (responseFields === null) {
        fail(400, 'The callback function must be provided for scenarios, such as pre-trigger, when response object is not available.');
    }
    const field = responseFields.Body;
    const body = field.value === undefined || field.value === null ? rows : field.value + stringify(rows);
    checkSize('Body', body);
    field.value = body;
    field.given = true;
}

function startQuery(query, options, callback) {
    const sorts = query !== null && query.sorts;
    const given = options.continuation;
    const resumed = sorts && typeof given === 'string' && startsWith(given, SORTED);
    const size = pageSizeOf(options);
    const first = askPage(sorts ? -1 : size, resumed ? undefined : given);
    if (first === null) {
        return { isAccepted: false };
    }
    const from = resumed ? +slice(given, SORTED.length) || 0 : 0;
    enqueue(() => finishQuery(query, first, size, from, callback || toResponse));
    return { isAccepted: true };
}

// ---- the functions ----

const isCollection = (value) => value === collection || value === underscore;

function needFunction(value) {
    if (typeof value !== 'function') {
        fail(400, 'The predicate/transform function must be provided.');
    }
}

function nameProperty(name) {
    if (typeof name !== 'string' || name === '') {
        fail(400, 'The property name must be a string and cannot be empty.');
    }
    return (row) => (row === undefined || row === null ? undefined : row[name]);
}

function makeUnwind(inner, result) {
    if (typeof inner !== 'function') {
        fail(400, 'When using "unwind", "collectionSelector" must be ' + (inner ? 'a function.' : 'used.'));
    }
    if (inner.length !== 1) {
        fail(400, '"collectionSelector" requires one argument.');
    }
    if (result !== undefined && result.length < 2) {
        fail(400, '"resultSelector" requires two arguments.');
    }
    return unwindWith(inner, result);
}

/** How each function reads its arguments: returns its stage and the number of arguments used. */
const makers = {
    __proto__: null,
    filter: (given) => (needFunction(given[0]), { work: filterWith(given[0]), used: 1 }),
    map: (given) => (needFunction(given[0]), { work: mapWith(given[0]), used: 1 }),
    pluck: (given) => ({ work: mapWith(nameProperty(given[0])), used: 1 }),
    sortBy: (given) => (needFunction(given[0]), { work: sortWith(given[0], 1), used: 1, sorts: true }),
    sortByDescending: (given) => (needFunction(given[0]), { work: sortWith(given[0], -1), used: 1, sorts: true }),
    flatten: (given) => ({ work: flattenWith(given[0] === true ? 1 : -1), used: typeof given[0] === 'boolean' ? 1 : 0 }),
    unwind(given) {
        const result = typeof given[1] === 'function' ? given[1] : undefined;
        return { work: makeUnwind(given[0], result), used: result === undefined ? 1 : 2 };
    },
};

function refuseInChain(rest) {
    if (rest[0] !== undefined && typeof rest[0] !== 'function') {
        fail(400, 'When using "chain", options can only be provided on the call to the "value" function');
    }
    if (rest[0] !== undefined || rest[1] !== undefined) {
        fail(400, 'When using "chain", the callback parameter can only be provided on the "value" function.');
    }
}

function queryFunction(name, before, chained) {
    return (...parameters) => {
        const given = isCollection(parameters[0]) ? sliceArray(parameters, 1) : parameters;
        const made = makers[name](given);
        const rest = sliceArray(given, made.used);
        const query = stage(before, made.work, made.sorts === true);
        if (chained) {
            refuseInChain(rest);
            return chainOf(query);
        }
        const taken = takeOptions(rest[0], rest[1]);
        return startQuery(query, taken.options, taken.callback);
    };
}

function addQueryFunctions(object, before, chained) {
    const names = keysOf(makers);
    for (let i = 0; i < names.length; i++) {
        object[names[i]] = queryFunction(names[i], before, chained);
    }
}

function chainOf(query) {
    const chain = { isAccepted: true };
    addQueryFunctions(chain, query, true);
    chain.value = (options, callback) => {
        const swapped = typeof options === 'function' && typeof callback === 'object';
        const taken = swapped ? takeOptions(callback, options) : takeOptions(options, callback);
        return startQuery(query, taken.options, taken.callback);
    };
    return chain;
}

addQueryFunctions(collection, null, false);
collection.chain = () => chainOf(null);
