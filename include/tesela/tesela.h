/* tesela/tesela.h — all of libtesela, a client in C for the SQL API of Azure Cosmos DB, tesela, and other servers that speak its REST
 * protocol. docs/client.md is the guide. */
#ifndef TESELA_TESELA_H
#define TESELA_TESELA_H

#include <tesela/base.h>
#include <tesela/changes.h>
#include <tesela/client.h>
#include <tesela/container.h>
#include <tesela/cursor.h>
#include <tesela/item.h>
#include <tesela/processor.h>
#include <tesela/query.h>
#include <tesela/resolver.h>
#include <tesela/ring.h>
#include <tesela/synthetic.h>

#endif
