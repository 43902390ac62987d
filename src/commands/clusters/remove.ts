import { removalCommand } from '../../cli/command/removal.ts'
import { findCluster } from '../../cli/names/names.ts'

export default removalCommand({
  summary: 'Remove a cluster; its hosts stay',
  examples: ['$ rsm clusters remove web --yes'],
  arg: ['cluster', 'names of clusters'],
  noun: 'cluster',
  nameOf: ({ name }) => name,
  find: findCluster,
  remove: (client, id) => client.clusters.remove(id),
})
