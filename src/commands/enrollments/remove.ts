import { removalCommand } from '../../cli/command/removal.ts'
import { findEnrollment } from '../../cli/names/names.ts'

export default removalCommand({
  summary: 'Remove an enrollment token; the hosts that it enrolled stay',
  examples: ['$ rsm enrollments remove 3 --yes'],
  arg: ['enrollment', 'ids or names of the tokens'],
  noun: 'enrollment',
  nameOf: ({ id }) => `token ${id}`,
  find: findEnrollment,
  remove: (client, id) => client.enrollments.remove(id),
})
