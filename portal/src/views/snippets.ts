// First programs for the official SDKs and drivers. The key comes from the environment, so that no program has it in its text. Each can be run
// again and again, and beside the others: a container belongs to the API that made it, so every API has names of its own.
// tests/browser/snippets.test.js runs them, or compiles those whose SDK is not there.

export type Api = "sql" | "mongo" | "cassandra" | "table" | "gremlin";

export interface Snippet {
  language: string;
  install: string;
  code: string;
}

const sql = (host: string, port: number): Snippet[] => {
  const endpoint = `https://${host}:${port}/`;
  return [
    {
      language: "JavaScript",
      install: "npm install @azure/cosmos\nNODE_EXTRA_CA_CERTS=tesela.pem COSMOS_KEY=… node first.mjs",
      code: `import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: "${endpoint}", key: process.env.COSMOS_KEY });
const { database } = await client.databases.createIfNotExists({ id: "shop" });
const { container } = await database.containers.createIfNotExists({ id: "orders", partitionKey: "/customer" });
await container.items.upsert({ id: "1", customer: "ana", total: 42 });
const { resource, requestCharge } = await container.item("1", "ana").read();
console.log(resource, requestCharge);`,
    },
    {
      language: "Python",
      install: "pip install azure-cosmos\nCOSMOS_KEY=… python first.py",
      code: `import os
from azure.cosmos import CosmosClient, PartitionKey

client = CosmosClient("${endpoint}", os.environ["COSMOS_KEY"], connection_verify="tesela.pem")
database = client.create_database_if_not_exists("shop")
container = database.create_container_if_not_exists("orders", PartitionKey("/customer"))
container.upsert_item({"id": "1", "customer": "ana", "total": 42})
print(container.read_item("1", "ana"))`,
    },
    {
      language: "Java",
      install: "com.azure:azure-cosmos\nkeytool -importcert -noprompt -alias tesela -file tesela.pem -keystore trust.jks -storepass changeit\njava -Djavax.net.ssl.trustStore=trust.jks …",
      code: `import com.azure.cosmos.*;
import com.azure.cosmos.models.PartitionKey;
import java.util.Map;

try (CosmosClient client = new CosmosClientBuilder()
        .endpoint("${endpoint}").key(System.getenv("COSMOS_KEY")).gatewayMode().buildClient()) {
    client.createDatabaseIfNotExists("shop");
    CosmosDatabase database = client.getDatabase("shop");
    database.createContainerIfNotExists("orders", "/customer");
    CosmosContainer orders = database.getContainer("orders");
    orders.upsertItem(Map.of("id", "1", "customer", "ana", "total", 42));
    System.out.println(orders.readItem("1", new PartitionKey("ana"), Map.class).getItem());
}`,
    },
    {
      language: ".NET",
      install: "dotnet add package Microsoft.Azure.Cosmos",
      code: `using Microsoft.Azure.Cosmos;

using var client = new CosmosClient("${endpoint}", Environment.GetEnvironmentVariable("COSMOS_KEY"));
Database database = await client.CreateDatabaseIfNotExistsAsync("shop");
Container orders = await database.CreateContainerIfNotExistsAsync("orders", "/customer");
await orders.UpsertItemAsync(new { id = "1", customer = "ana", total = 42 }, new PartitionKey("ana"));
var read = await orders.ReadItemAsync<dynamic>("1", new PartitionKey("ana"));
Console.WriteLine($"{read.Resource} {read.RequestCharge} RU");`,
    },
    {
      language: "Go",
      install: "go get github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos\nSSL_CERT_FILE=tesela.pem COSMOS_KEY=… go run .",
      code: `cred, _ := azcosmos.NewKeyCredential(os.Getenv("COSMOS_KEY"))
client, err := azcosmos.NewClientWithKey("${endpoint}", cred, nil)
if err != nil {
	log.Fatal(err)
}
orders, _ := client.NewContainer("shop", "orders")
item := []byte(\`{"id":"1","customer":"ana","total":42}\`)
answer, err := orders.UpsertItem(context.Background(), azcosmos.NewPartitionKeyString("ana"), item, nil)
fmt.Println(answer.RequestCharge, err)`,
    },
    {
      language: "C",
      install: "cc first.c $(pkg-config --cflags --libs libtesela) -o first\nCOSMOS_KEY=… ./first",
      code: `#include <stdio.h>
#include <stdlib.h>
#include <tesela/tesela.h>

int main(void) {
    tesela_error error;
    tesela_client *client;
    tesela_container *orders;
    tesela_response *read = NULL;
    tesela_key ana = tesela_key_string("ana");
    tesela_client_options options = {.endpoint = "${endpoint}", .key = getenv("COSMOS_KEY"), .ca_file = "tesela.pem"};
    if (tesela_client_open(&options, &client, &error) != TESELA_OK) {
        fprintf(stderr, "%s\\n", error.message);
        return 1;
    }
    tesela_database_create(client, "shop", NULL, NULL, NULL); /* they may be there already */
    tesela_container_create(client, "shop", "{\\"id\\":\\"orders\\",\\"partitionKey\\":{\\"paths\\":[\\"/customer\\"],\\"version\\":2}}", NULL, NULL, NULL);
    if (tesela_container_open(client, "shop", "orders", &orders, &error) != TESELA_OK ||
        tesela_item_upsert(orders, "{\\"id\\":\\"1\\",\\"customer\\":\\"ana\\",\\"total\\":42}", NULL, NULL, NULL, &error) != TESELA_OK ||
        tesela_item_read(orders, "1", &ana, NULL, &read, &error) != TESELA_OK) {
        fprintf(stderr, "%s\\n", error.message);
        return 1;
    }
    printf("%s %.2f RU\\n", tesela_response_body(read, NULL), tesela_response_charge(read));
    tesela_response_free(read);
    tesela_container_close(orders);
    tesela_client_close(client);
    return 0;
}`,
    },
    {
      language: "curl",
      install: "COSMOS_KEY=… bash first.sh",
      code: `date=$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S GMT')
key=$(printf %s "$COSMOS_KEY" | base64 -d | od -An -v -tx1 | tr -d ' \\n')
signature=$(printf 'get\\ndbs\\n\\n%s\\n\\n' "\${date,,}" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64 -w 0)
authorization=$(printf %s "type=master&ver=1.0&sig=$signature" | sed 's/%/%25/g; s/&/%26/g; s/=/%3D/g; s/+/%2B/g; s,/,%2F,g')
curl --silent --show-error --fail --cacert tesela.pem -H "x-ms-date: $date" -H "x-ms-version: 2018-12-31" -H "authorization: $authorization" ${endpoint}dbs`,
    },
  ];
};

const mongo = (host: string, port: number): Snippet[] => [
  {
    language: "JavaScript",
    install: "npm install mongodb\nCOSMOS_KEY=… node first.mjs",
    code: `import { MongoClient } from "mongodb";

const key = encodeURIComponent(process.env.COSMOS_KEY);
const client = new MongoClient(\`mongodb://localhost:\${key}@${host}:${port}/?replicaSet=globaldb&tls=true&tlsCAFile=tesela.pem\`);
const customers = client.db("shop").collection("customers");
await customers.replaceOne({ _id: 1 }, { name: "Ana" }, { upsert: true });
console.log(await customers.findOne({ _id: 1 }));
await client.close();`,
  },
  {
    language: "Python",
    install: "pip install pymongo\nCOSMOS_KEY=… python first.py",
    code: `import os
from pymongo import MongoClient

client = MongoClient("${host}", ${port}, username="localhost", password=os.environ["COSMOS_KEY"],
                     replicaSet="globaldb", tls=True, tlsCAFile="tesela.pem")
customers = client.shop.customers
customers.replace_one({"_id": 1}, {"name": "Ana"}, upsert=True)
print(customers.find_one({"_id": 1}))`,
  },
  { language: "mongosh", install: "", code: `mongosh "mongodb://${host}:${port}/?replicaSet=globaldb" --tls --tlsCAFile tesela.pem --username localhost --password "$COSMOS_KEY"` },
];

const cassandra = (host: string, port: number): Snippet[] => [
  {
    language: "JavaScript",
    install: "npm install cassandra-driver\nCOSMOS_KEY=… node first.mjs",
    code: `import { readFileSync } from "node:fs";
import cassandra from "cassandra-driver";

const client = new cassandra.Client({
  contactPoints: ["${host}:${port}"],
  localDataCenter: "datacenter1",
  sslOptions: { ca: [readFileSync("tesela.pem")] },
  authProvider: new cassandra.auth.PlainTextAuthProvider("localhost", process.env.COSMOS_KEY),
});
await client.execute("CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}");
await client.execute("CREATE TABLE IF NOT EXISTS shop.visits (customer text, id int, minutes int, PRIMARY KEY (customer, id))");
await client.execute("INSERT INTO shop.visits (customer, id, minutes) VALUES ('ana', 1, 42)");
console.log((await client.execute("SELECT * FROM shop.visits WHERE customer = 'ana'")).rows);
await client.shutdown();`,
  },
  {
    language: "Python",
    install: "pip install cassandra-driver\nCOSMOS_KEY=… python first.py",
    code: `import os, ssl
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster

cluster = Cluster(["${host}"], port=${port},
                  ssl_context=ssl.create_default_context(cafile="tesela.pem"), ssl_options={"server_hostname": "${host}"},
                  auth_provider=PlainTextAuthProvider("localhost", os.environ["COSMOS_KEY"]))
session = cluster.connect()
print(session.execute("SELECT keyspace_name FROM system_schema.keyspaces").all())
cluster.shutdown()`,
  },
];

const table = (host: string, port: number): Snippet[] => [
  {
    language: "JavaScript",
    install: "npm install @azure/data-tables\nNODE_EXTRA_CA_CERTS=tesela.pem COSMOS_KEY=… node first.mjs",
    code: `import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";

const people = new TableClient("https://${host}:${port}/localhost", "people", new AzureNamedKeyCredential("localhost", process.env.COSMOS_KEY));
await people.createTable();
await people.upsertEntity({ partitionKey: "Lima", rowKey: "1", name: "Ana" });
console.log(await people.getEntity("Lima", "1"));`,
  },
  {
    language: "Python",
    install: "pip install azure-data-tables\nCOSMOS_KEY=… python first.py",
    code: `import os
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

service = TableServiceClient("https://${host}:${port}/localhost", credential=AzureNamedKeyCredential("localhost", os.environ["COSMOS_KEY"]),
                             connection_verify="tesela.pem")
people = service.create_table_if_not_exists("people")
people.upsert_entity({"PartitionKey": "Lima", "RowKey": "1", "name": "Ana"})
print(people.get_entity("Lima", "1"))`,
  },
];

const gremlin = (host: string, port: number): Snippet[] => [
  {
    language: "JavaScript",
    install: "npm install gremlin\nNODE_EXTRA_CA_CERTS=tesela.pem COSMOS_KEY=… node first.mjs",
    code: `import gremlin from "gremlin";

const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator("/dbs/shop/colls/people", process.env.COSMOS_KEY);
const client = new gremlin.driver.Client("wss://${host}:${port}/", { authenticator, traversalsource: "g", mimeType: "application/vnd.gremlin-v2.0+json" });
// The container, here with the partition key /city, is made in the portal or by the SQL API.
await client.submit("g.V('ana').fold().coalesce(unfold(), addV('person').property('id', 'ana').property('city', 'Lima'))");
console.log(await client.submit("g.V('ana').values('city')"));
await client.close();`,
  },
  {
    language: "Python",
    install: "pip install gremlinpython\nSSL_CERT_FILE=tesela.pem COSMOS_KEY=… python first.py",
    code: `import os
from gremlin_python.driver import client, serializer

people = client.Client("wss://${host}:${port}/", "g", username="/dbs/shop/colls/people", password=os.environ["COSMOS_KEY"],
                       message_serializer=serializer.GraphSONSerializersV2d0())
print(people.submit("g.V().count()").all().result())`,
  },
];

export function snippets(api: Api, host: string, port: number): Snippet[] {
  return { sql, mongo, cassandra, table, gremlin }[api](host, port);
}
