import { carriedFilesContract } from '../../contracts/carried-files.ts'
import { startCluster, clusterTest as test } from '../../helpers/cluster/cluster.ts'

carriedFilesContract(test, 'on PostgreSQL', async (t) => (await startCluster(t, { size: 1 })).front)
