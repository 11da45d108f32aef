// The service's surface: what Azure's service has is accepted, and what it does not have is refused with the service's codes. The lists are
// those of its feature pages (shared by versions 4.2 to 7.0).
import { assert, fails, suite } from "./harness.js";

const words = (text) => text.trim().split(/\s+/);

const commands = {
  yes: words("abortTransaction aggregate buildInfo collStats commitTransaction count create createIndexes currentOp dbStats delete distinct drop dropDatabase dropIndexes endSessions explain find findAndModify getLastError getMore hello hostInfo insert killCursors listCollections listDatabases listIndexes logout ping reIndex update whatsmyuri"),
  no: words("cloneCollectionAsCapped collMod connPoolStats connectionStatus convertToCapped copydb dataSize dbHash eval features getPrevError killOp listCommands mapReduce parallelCollectionScan profile renameCollection resetError serverStatus top"),
};
const stages = {
  yes: words("addFields count facet geoNear group limit match merge out project redact replaceRoot replaceWith sample set skip sort sortByCount unset unwind lookup"),
  no: words("bucket bucketAuto collStats currentOp graphLookup indexStats listLocalSessions listSessions densify documents fill setWindowFields unionWith"),
};
const expressions = {
  yes: words(`and or not convert toBool toDate toDecimal toDouble toInt toLong toObjectId toString setEquals setIntersection setUnion setDifference setIsSubset anyElementTrue allElementsTrue
    cmp eq gt gte lt lte ne in abs add ceil divide exp floor ln log log10 mod multiply pow round sqrt subtract trunc acos acosh asin asinh atan atan2 atanh cos cosh degreesToRadians radiansToDegrees sin sinh tan tanh
    concat indexOfBytes indexOfCP ltrim rtrim trim split strLenBytes strLenCP strcasecmp substr substrBytes substrCP toLower toUpper arrayElemAt arrayToObject concatArrays filter indexOfArray isArray objectToArray range reverseArray
    reduce size slice zip map let literal dayOfYear dayOfMonth dayOfWeek year month week hour minute second millisecond dateToString isoDayOfWeek isoWeek dateFromParts dateToParts dateFromString isoWeekYear cond ifNull switch type mergeObjects
    regexFind regexFindAll regexMatch`),
  no: words("meta dateAdd dateDiff dateSubtract dateTrunc setField getField unsetField sortArray firstN lastN maxN minN rand sampleRate tsSecond tsIncrement bitAnd bitOr bitXor bitNot replaceOne replaceAll binarySize bsonSize isNumber toUUID function"),
};
const accumulators = {
  yes: words("sum avg first last max min push addToSet stdDevPop stdDevSamp"),
  no: words("top topN bottom bottomN firstN lastN maxN minN median percentile mergeObjects count accumulator"),
};
const filters = {
  yes: { or: { $or: [{ a: 1 }] }, and: { $and: [{ a: 1 }] }, not: { a: { $not: { $gt: 1 } } }, nor: { $nor: [{ a: 1 }] }, exists: { a: { $exists: true } }, type: { a: { $type: "int" } }, expr: { $expr: { $eq: ["$a", 1] } }, mod: { a: { $mod: [2, 0] } }, regex: { a: /x/ }, all: { a: { $all: [1] } }, elemMatch: { a: { $elemMatch: { $gt: 1 } } }, size: { a: { $size: 1 } }, comment: { a: 1, $comment: "x" }, in: { a: { $in: [1] } }, nin: { a: { $nin: [1] } }, geoWithin: { a: { $geoWithin: { $geometry: { type: "Polygon", coordinates: [[[0, 0], [1, 0], [1, 1], [0, 0]]] } } } }, geoIntersects: { a: { $geoIntersects: { $geometry: { type: "Point", coordinates: [0, 0] } } } } },
  no: { jsonSchema: { $jsonSchema: {} }, text: { $text: { $search: "x" } }, where: { $where: "true" }, bitsAllSet: { a: { $bitsAllSet: 1 } }, bitsAnySet: { a: { $bitsAnySet: 1 } }, bitsAllClear: { a: { $bitsAllClear: 1 } }, bitsAnyClear: { a: { $bitsAnyClear: 1 } }, "$center": { a: { $geoWithin: { $center: [[0, 0], 1] } } }, centerSphere: { a: { $geoWithin: { $centerSphere: [[0, 0], 1] } } }, box: { a: { $geoWithin: { $box: [[0, 0], [1, 1]] } } }, polygon: { a: { $geoWithin: { $polygon: [[0, 0], [1, 0], [1, 1]] } } } },
};
const updates = { inc: { $inc: { a: 1 } }, mul: { $mul: { a: 1 } }, rename: { $rename: { z: "y" } }, setOnInsert: { $setOnInsert: { a: 1 } }, set: { $set: { a: 1 } }, unset: { $unset: { q: 1 } }, min: { $min: { a: 1 } }, max: { $max: { a: 1 } }, currentDate: { $currentDate: { d: true } }, addToSet: { $addToSet: { l: 1 } }, pop: { $pop: { l: 1 } }, pullAll: { $pullAll: { l: [1] } }, pull: { $pull: { l: 1 } }, push: { $push: { l: { $each: [2, 1], $slice: 5, $sort: 1, $position: 0 } } }, bit: { $bit: { a: { and: 1 } } } };

const refused = (error) => /not supported|unrecognized|unknown|not allowed/i.test(error?.message ?? "");
const code = async (promise) => promise.then(() => undefined, (error) => error);

suite(
  "the service's features",
  (t) => {
    let collection;
    const ready = async () => {
      collection ??= t.collection();
      await collection.updateOne({ _id: 1 }, { $set: { a: 1, l: [1] } }, { upsert: true });
      return collection;
    };

    t.it("are its commands", async () => {
      for (const name of commands.yes.filter((n) => !["logout", "dropDatabase"].includes(n))) {
        const error = await code(t.db.command({ [name]: name === "explain" ? { find: "x" } : name === "killCursors" ? "x" : "x" }));
        assert.ok(![59, 115].includes(error?.code), `${name}: ${error?.message}`);
      }
      for (const name of commands.no) assert.equal((await code(t.db.command({ [name]: "x" })))?.code, 115, name);
    });

    t.it("are its stages", async () => {
      await ready();
      for (const name of stages.yes) {
        const error = await code(collection.aggregate([{ [`$${name}`]: {} }]).toArray());
        assert.ok(error?.code !== 40324 && !/not supported/.test(error?.message ?? ""), `${name}: ${error?.message}`);
      }
      for (const name of stages.no) assert.equal((await code(collection.aggregate([{ [`$${name}`]: {} }]).toArray()))?.code, 40324, name);
      const piped = { $lookup: { from: "x", let: { a: 1 }, pipeline: [], as: "y" } };
      assert.match((await code(collection.aggregate([piped]).toArray())).message, /let is not supported/);
    });

    t.it("are its expressions and accumulators", async () => {
      await ready();
      const project = (name) => code(collection.aggregate([{ $project: { v: { [`$${name}`]: {} } } }]).toArray());
      const group = (name) => code(collection.aggregate([{ $group: { _id: null, v: { [`$${name}`]: {} } } }]).toArray());
      for (const name of expressions.yes) assert.ok(!refused(await project(name)), name);
      for (const name of expressions.no) assert.ok(refused(await project(name)), name);
      for (const name of accumulators.yes) assert.ok(!refused(await group(name)), name);
      for (const name of accumulators.no) assert.ok(refused(await group(name)), name);
    });

    t.it("are its filters, also of updates and deletes, by _id too", async () => {
      await ready();
      for (const [name, filter] of Object.entries(filters.yes)) assert.equal(await code(collection.find(filter).toArray()), undefined, name);
      for (const [name, filter] of Object.entries(filters.no)) {
        const runs = {
          find: () => collection.find(filter).toArray(),
          count: () => collection.countDocuments(filter),
          update: () => collection.updateOne(filter, { $set: { b: 1 } }),
          delete: () => collection.deleteOne(filter),
          "find by _id": () => collection.findOne({ _id: 1, ...filter }),
          "update by _id": () => collection.updateOne({ _id: 1, ...filter }, { $set: { b: 1 } }),
          "delete by _id": () => collection.deleteOne({ _id: 1, ...filter }),
        };
        for (const [way, run] of Object.entries(runs)) assert.ok((await code(run()))?.code, `${way}: ${name}`);
      }
      assert.deepEqual(await collection.findOne({ _id: 1 }), { _id: 1, a: 1, l: [1] });
    });

    t.it("are its updates", async () => {
      await ready();
      for (const [name, update] of Object.entries(updates)) assert.equal(await code(collection.updateOne({ _id: 1 }, update)), undefined, name);
      await fails(collection.updateOne({ _id: 1 }, { $frob: { a: 1 } }), 9);
      await collection.updateOne({ _id: 1 }, { $set: { l: [{ x: 1 }, { x: 2 }] } });
      await collection.updateOne({ _id: 1 }, { $set: { "l.$[each].x": 5 } }, { arrayFilters: [{ "each.x": 2 }] });
      assert.deepEqual((await collection.findOne({ _id: 1 })).l, [{ x: 1 }, { x: 5 }]);
      for (const filter of [{ _id: 1 }, { a: { $gte: 0 } }]) assert.ok((await code(collection.updateOne(filter, [{ $set: { z: { $sortArray: { input: "$l", sortBy: 1 } } } }])))?.code);
    });
  },
  { flags: ["--throttling", "off", "--mongo-surface", "service"], ways: ["plain"] },
);
