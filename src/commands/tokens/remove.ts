import { removalCommand } from '../../ui/command/removal.ts'
import { findToken } from '../../ui/names/names.ts'

export default removalCommand({
  summary: 'Revoke one of your personal access tokens; what depends on it closes at once',
  examples: ['$ rsm tokens remove nightly --yes'],
  arg: ['token', 'names or ids of tokens'],
  noun: 'token',
  nameOf: ({ id, name }) => `${name ?? 'without a name'} (id ${id})`,
  find: findToken,
  remove: (client, id) => client.tokens.remove(id),
})
