import { removalCommand } from '../../cli/command/removal.ts'
import { findToken } from '../../cli/names/names.ts'

export default removalCommand({
  summary: 'Revoke your personal access tokens; their sessions close',
  examples: ['$ rsm tokens remove nightly --yes'],
  arg: ['token', 'names or ids of tokens'],
  noun: 'token',
  nameOf: ({ id, name }) => `${name ?? 'without a name'} (id ${id})`,
  find: findToken,
  remove: (client, id) => client.tokens.remove(id),
})
