import { audit } from './audit.ts'
import { executions } from './executions.ts'
import { history } from './history.ts'
import { links } from './links.ts'
import { outputs } from './outputs.ts'
import { presence } from './presence.ts'
import { recordings } from './recordings.ts'
import { relay } from './relay.ts'
import { results } from './results.ts'
import { servers } from './servers.ts'
import { shortLived } from './short-lived.ts'
import { store } from './store.ts'

/** The first schema: one file for each seam. */
export const first: readonly string[] = [
  // Of servers, owners of tasks and links alike, and never back: what is written under a lower one is fenced.
  'create sequence rsm.epochs',
  // The time by which leases, tickets and signatures expire, whichever server asks. Tests put another one in its place.
  'create function rsm.now() returns timestamptz language sql volatile as $$ select clock_timestamp() $$',
  ...servers,
  ...links,
  ...presence,
  ...shortLived,
  ...audit,
  ...recordings,
  ...history,
  ...executions,
  ...outputs,
  ...results,
  ...store,
  ...relay,
]
