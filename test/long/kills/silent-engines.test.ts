import test from 'ava'
import { silentEnginesContract } from '../../contracts/engines.ts'
import { serversOfDirectory } from '../../helpers/servers/servers-of-directory.ts'

silentEnginesContract(test, serversOfDirectory)
