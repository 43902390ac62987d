import { removalCommand } from '../../cli/command/removal.ts'
import { findUser } from '../../cli/names/names.ts'

export default removalCommand({
  summary: 'Remove a user; their sessions and tokens end (for administrators)',
  examples: ['$ rsm users remove alice --yes'],
  arg: ['user', 'names of users'],
  noun: 'user',
  nameOf: ({ username }) => username,
  find: findUser,
  remove: (client, id) => client.users.remove(id),
})
