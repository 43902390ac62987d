import { findUser } from '../../client/names.ts'
import type { User } from '../../core/protocol/http/users.ts'
import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'

export default class UsersRemove extends RemovalCommand {
  static override summary = 'Remove a user; their sessions and tokens end (for administrators)'
  static override examples = ['$ rsm users remove alice --yes']
  static override args = {
    user: namesToRemove('names of users'),
  }
  static override flags = { ...removalFlags }

  async run() {
    const { args, flags } = await this.parse(UsersRemove)
    this.globals = flags
    const client = await this.client()
    const names = args.user
    const found = await this.lookUp(names, (name) => findUser(client, name))
    const removed = await this.removeAll(
      found,
      {
        noun: 'user',
        nameOf: (user: User) => user.username,
        remove: ({ id }) => client.users.remove(id),
      },
      flags.yes,
    )
    return names.length === 1 ? removed[0] : removed
  }
}
