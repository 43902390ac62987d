/** Webhooks, and what is to be told them. */
export const fourth: readonly string[] = [
  `create table rsm.webhooks(
    id bigint primary key, rec json not null,
    name text collate "C" unique deferrable initially deferred)`,
  'create sequence rsm.webhooks_ids',
  `create table rsm.deliveries(
    id text collate "C" primary key, rec json not null,
    "webhookId" bigint, queue text collate "C", "endedAt" text collate "C")`,
  'create index on rsm.deliveries("webhookId", id)',
  'create index on rsm.deliveries(queue, id)',
  'create index on rsm.deliveries("endedAt")',
]
