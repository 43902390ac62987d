import { namesToRemove, RemovalCommand, removalFlags } from '../../ui/command/removal.ts'
import { findUser } from '../../ui/names/names.ts'

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
    return this.removeNamed(
      args.user,
      {
        find: (name) => findUser(client, name),
        noun: 'user',
        nameOf: (user) => user.username,
        remove: ({ id }) => client.users.remove(id),
      },
      flags.yes,
    )
  }
}
