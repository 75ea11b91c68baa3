PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE event (
    seq     INTEGER PRIMARY KEY,
    at_ns   INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    job     INTEGER,
    text    TEXT NOT NULL           -- JSON, one line
);
INSERT INTO "event" VALUES(1,1749999989398948684,'submitted',1,'{"seq":1,"at":1749999989.398948684,"kind":"submitted","job":1,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(2,1749999989398948684,'placed',1,'{"seq":2,"at":1749999989.398948684,"kind":"placed","job":1,"attempt":0,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(3,1749999989469985592,'started',1,'{"seq":3,"at":1749999989.469985592,"kind":"started","job":1,"attempt":0}');
INSERT INTO "event" VALUES(4,1749999990439144482,'loaded',1,'{"seq":4,"at":1749999990.439144482,"kind":"loaded","job":1,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(5,1749999990439145054,'progress',1,'{"seq":5,"at":1749999990.439145054,"kind":"progress","job":1,"attempt":0,"step":1,"loss":0.80000000000000004}');
INSERT INTO "event" VALUES(6,1749999991440272782,'progress',1,'{"seq":6,"at":1749999991.440272782,"kind":"progress","job":1,"attempt":0,"step":2,"steps_per_s":0.99886337599999997,"loss":0.69999999999999996}');
INSERT INTO "event" VALUES(7,1749999992441952832,'progress',1,'{"seq":7,"at":1749999992.441952832,"kind":"progress","job":1,"attempt":0,"step":3,"steps_per_s":0.99858440900000001,"loss":0.59999999999999998}');
INSERT INTO "event" VALUES(8,1749999992482380350,'finished',1,'{"seq":8,"at":1749999992.482380350,"kind":"finished","job":1,"attempt":0,"exit_code":0,"step":3,"steps_per_s":0.99858440900000001}');
INSERT INTO "event" VALUES(9,1749999992553234535,'submitted',2,'{"seq":9,"at":1749999992.553234535,"kind":"submitted","job":2,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(10,1749999992553234535,'placed',2,'{"seq":10,"at":1749999992.553234535,"kind":"placed","job":2,"attempt":0,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(11,1749999992565908165,'started',2,'{"seq":11,"at":1749999992.565908165,"kind":"started","job":2,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(12,1749999992573443098,'lost',2,'{"seq":12,"at":1749999992.573443098,"kind":"lost","job":2,"attempt":0,"step":0,"why":"exit status 3"}');
INSERT INTO "event" VALUES(13,1749999992573443098,'placed',2,'{"seq":13,"at":1749999992.573443098,"kind":"placed","job":2,"attempt":1,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(14,1749999992586593740,'started',2,'{"seq":14,"at":1749999992.586593740,"kind":"started","job":2,"attempt":1,"loaded":true}');
INSERT INTO "event" VALUES(15,1749999992594639598,'failed',2,'{"seq":15,"at":1749999992.594639598,"kind":"failed","job":2,"attempt":1,"exit_code":3,"step":0,"reached":0.011942397,"why":"exit status 3"}');
INSERT INTO "event" VALUES(16,1749999992666475967,'submitted',3,'{"seq":16,"at":1749999992.666475967,"kind":"submitted","job":3,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(17,1749999992666475967,'placed',3,'{"seq":17,"at":1749999992.666475967,"kind":"placed","job":3,"attempt":0,"seats":[{"node":0,"gpus":[0],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(18,1749999992695405908,'started',3,'{"seq":18,"at":1749999992.695405908,"kind":"started","job":3,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(19,1749999992801930147,'cancelled',3,'{"seq":19,"at":1749999992.801930147,"kind":"cancelled","job":3,"attempt":0,"why":"cancelled"}');
INSERT INTO "event" VALUES(20,1749999992801930147,'recalled',3,'{"seq":20,"at":1749999992.801930147,"kind":"recalled","job":3,"attempt":0,"rule":"cancel","grace_s":0}');
INSERT INTO "event" VALUES(21,1749999992803607528,'failed',3,'{"seq":21,"at":1749999992.803607528,"kind":"failed","job":3,"attempt":0,"exit_code":143,"step":0,"reached":0.13284765900000001,"why":"cancelled"}');
INSERT INTO "event" VALUES(22,1749999992907151881,'rejected',4,'{"seq":22,"at":1749999992.907151881,"kind":"rejected","job":4,"class":"be","gpus":99,"why":"asks for 99 accelerators; no type has so many in a shape that fits"}');
INSERT INTO "event" VALUES(23,1749999992922129444,'submitted',5,'{"seq":23,"at":1749999992.922129444,"kind":"submitted","job":5,"class":"be","gpus":2}');
INSERT INTO "event" VALUES(24,1749999992922129444,'placed',5,'{"seq":24,"at":1749999992.922129444,"kind":"placed","job":5,"attempt":0,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(25,1749999992959842993,'started',5,'{"seq":25,"at":1749999992.959842993,"kind":"started","job":5,"attempt":0}');
INSERT INTO "event" VALUES(26,1749999993050094186,'submitted',6,'{"seq":26,"at":1749999993.050094186,"kind":"submitted","job":6,"class":"be","gpus":2}');
INSERT INTO "event" VALUES(27,1749999993050094186,'placed',6,'{"seq":27,"at":1749999993.050094186,"kind":"placed","job":6,"attempt":0,"seats":[{"node":0,"gpus":[2,3],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(28,1749999993077853993,'started',6,'{"seq":28,"at":1749999993.077853993,"kind":"started","job":6,"attempt":0}');
INSERT INTO "event" VALUES(29,1749999993186108011,'submitted',7,'{"seq":29,"at":1749999993.186108011,"kind":"submitted","job":7,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(30,1749999993186113481,'submitted',8,'{"seq":30,"at":1749999993.186113481,"kind":"submitted","job":8,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(31,1749999993186117598,'submitted',9,'{"seq":31,"at":1749999993.186117598,"kind":"submitted","job":9,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(32,1749999993189861391,'released',7,'{"seq":32,"at":1749999993.189861391,"kind":"released","job":7}');
INSERT INTO "event" VALUES(33,1749999993189861391,'placed',7,'{"seq":33,"at":1749999993.189861391,"kind":"placed","job":7,"attempt":0,"seats":[{"node":0,"gpus":[],"cpu_milli":1000,"mem_mib":1}],"spread":true}');
INSERT INTO "event" VALUES(34,1749999993218825057,'started',7,'{"seq":34,"at":1749999993.218825057,"kind":"started","job":7,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(35,1749999993221728289,'finished',7,'{"seq":35,"at":1749999993.221728289,"kind":"finished","job":7,"attempt":0,"exit_code":0,"step":0.012154982}');
INSERT INTO "event" VALUES(36,1749999993228785139,'released',8,'{"seq":36,"at":1749999993.228785139,"kind":"released","job":8}');
INSERT INTO "event" VALUES(37,1749999993228785139,'placed',8,'{"seq":37,"at":1749999993.228785139,"kind":"placed","job":8,"attempt":0,"seats":[{"node":0,"gpus":[],"cpu_milli":1000,"mem_mib":1}],"spread":true}');
INSERT INTO "event" VALUES(38,1749999993247523174,'started',8,'{"seq":38,"at":1749999993.247523174,"kind":"started","job":8,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(39,1749999993314656320,'submitted',10,'{"seq":39,"at":1749999993.314656320,"kind":"submitted","job":10,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(40,1749999993940172664,'loaded',5,'{"seq":40,"at":1749999993.940172664,"kind":"loaded","job":5,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(41,1749999993940173556,'progress',5,'{"seq":41,"at":1749999993.940173556,"kind":"progress","job":5,"attempt":0,"step":1.0014040450000001,"steps_per_s":1,"loss":0.88}');
INSERT INTO "event" VALUES(42,1749999994072382134,'loaded',6,'{"seq":42,"at":1749999994.072382134,"kind":"loaded","job":6,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(43,1749999994072382604,'progress',6,'{"seq":43,"at":1749999994.072382604,"kind":"progress","job":6,"attempt":0,"step":2,"loss":0.88}');
INSERT INTO "event" VALUES(44,1749999994941353122,'progress',5,'{"seq":44,"at":1749999994.941353122,"kind":"progress","job":5,"attempt":0,"step":2.0025857540000001,"steps_per_s":1,"loss":0.85999999999999999}');
INSERT INTO "event" VALUES(45,1749999995081885165,'progress',6,'{"seq":45,"at":1749999995.081885165,"kind":"progress","job":6,"attempt":0,"step":4,"steps_per_s":1.98888167,"loss":0.85999999999999999}');
INSERT INTO "event" VALUES(46,1749999995329362672,'submitted',11,'{"seq":46,"at":1749999995.329362672,"kind":"submitted","job":11,"class":"te","gpus":2}');
INSERT INTO "event" VALUES(47,1749999995329362672,'recalled',5,'{"seq":47,"at":1749999995.329362672,"kind":"recalled","job":5,"attempt":0,"rule":"trial","grace_s":5,"for":11}');
INSERT INTO "event" VALUES(48,1749999995329362672,'placed',11,'{"seq":48,"at":1749999995.329362672,"kind":"placed","job":11,"attempt":0,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}],"after":[{"job":5,"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(49,1749999995345945947,'stopped',5,'{"seq":49,"at":1749999995.345945947,"kind":"stopped","job":5,"attempt":0,"exit_code":85,"clean":true,"step":2.401294536}');
INSERT INTO "event" VALUES(50,1749999995371262010,'started',11,'{"seq":50,"at":1749999995.371262010,"kind":"started","job":11,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(51,1749999996081937620,'progress',6,'{"seq":51,"at":1749999996.081937620,"kind":"progress","job":6,"attempt":0,"step":6,"steps_per_s":1.9904733400000001,"loss":0.83999999999999997}');
INSERT INTO "event" VALUES(52,1749999996378052718,'finished',11,'{"seq":52,"at":1749999996.378052718,"kind":"finished","job":11,"attempt":0,"exit_code":0,"step":1.019120193}');
INSERT INTO "event" VALUES(53,1749999996378052718,'placed',5,'{"seq":53,"at":1749999996.378052718,"kind":"placed","job":5,"attempt":1,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(54,1749999996397896511,'started',5,'{"seq":54,"at":1749999996.397896511,"kind":"started","job":5,"attempt":1}');
INSERT INTO "event" VALUES(55,1749999997083102268,'progress',6,'{"seq":55,"at":1749999997.083102268,"kind":"progress","job":6,"attempt":0,"step":8,"steps_per_s":1.9929808600000001,"loss":0.81999999999999995}');
INSERT INTO "event" VALUES(56,1749999997394183539,'loaded',5,'{"seq":56,"at":1749999997.394183539,"kind":"loaded","job":5,"attempt":1,"loaded":true}');
INSERT INTO "event" VALUES(57,1749999997394184210,'progress',5,'{"seq":57,"at":1749999997.394184210,"kind":"progress","job":5,"attempt":1,"step":3.4051757030000003,"steps_per_s":1,"loss":0.88}');
INSERT INTO "event" VALUES(58,1749999998090250889,'progress',6,'{"seq":58,"at":1749999998.090250889,"kind":"progress","job":6,"attempt":0,"step":10,"steps_per_s":1.9918930100000001,"loss":0.80000000000000004}');
INSERT INTO "event" VALUES(59,1749999998395305837,'progress',5,'{"seq":59,"at":1749999998.395305837,"kind":"progress","job":5,"attempt":1,"step":4.4063322149999999,"steps_per_s":1,"loss":0.85999999999999999}');
INSERT INTO "event" VALUES(60,1749999998462271129,'submitted',12,'{"seq":60,"at":1749999998.462271129,"kind":"submitted","job":12,"class":"te","gpus":2}');
INSERT INTO "event" VALUES(61,1749999998462271129,'recalled',5,'{"seq":61,"at":1749999998.462271129,"kind":"recalled","job":5,"attempt":1,"rule":"trial","grace_s":5,"for":12}');
INSERT INTO "event" VALUES(62,1749999998462271129,'placed',12,'{"seq":62,"at":1749999998.462271129,"kind":"placed","job":12,"attempt":0,"seats":[{"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}],"after":[{"job":5,"node":0,"gpus":[0,1],"cpu_milli":0,"mem_mib":0}]}');
INSERT INTO "event" VALUES(63,1749999998482526347,'stopped',5,'{"seq":63,"at":1749999998.482526347,"kind":"stopped","job":5,"attempt":1,"exit_code":85,"clean":true,"step":4.4934123230000003}');
INSERT INTO "event" VALUES(64,1749999998505869225,'started',12,'{"seq":64,"at":1749999998.505869225,"kind":"started","job":12,"attempt":0,"loaded":true}');
INSERT INTO "event" VALUES(65,1749999998583571630,'submitted',13,'{"seq":65,"at":1749999998.583571630,"kind":"submitted","job":13,"class":"be","gpus":4}');
INSERT INTO "event" VALUES(66,1749999998604934714,'submitted',14,'{"seq":66,"at":1749999998.604934714,"kind":"submitted","job":14,"class":"be","gpus":1}');
INSERT INTO "event" VALUES(67,1749999998608437566,'submitted',15,'{"seq":67,"at":1749999998.608437566,"kind":"submitted","job":15,"class":"be","gpus":0}');
INSERT INTO "event" VALUES(68,1749999999094086696,'progress',6,'{"seq":68,"at":1749999999.094086696,"kind":"progress","job":6,"attempt":0,"step":12,"steps_per_s":1.9924433699999999,"loss":0.78000000000000003}');
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "fact" VALUES('fake_gpus','v100:4');
INSERT INTO "fact" VALUES('policy','fitgpp,max_preemptions=0');
CREATE TABLE job (
    id          INTEGER PRIMARY KEY,
    uid         INTEGER NOT NULL,
    user        TEXT NOT NULL,
    name        TEXT,
    class       TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT,
    gpus        INTEGER NOT NULL,
    types       TEXT,
    entity      TEXT,
    array_id    INTEGER,
    array_index INTEGER,
    placement   TEXT,               -- JSON; where it is, or was last
    attempt     INTEGER,
    preemptions INTEGER NOT NULL DEFAULT 0,
    failures    INTEGER NOT NULL DEFAULT 0,
    exit_code   INTEGER,
    submit_ns   INTEGER NOT NULL,
    start_ns    INTEGER,
    end_ns      INTEGER,
    waited_ns   INTEGER NOT NULL DEFAULT 0,
    served_ns   INTEGER NOT NULL DEFAULT 0,
    step        REAL,
    steps       REAL,
    rate_per_s  REAL,
    loss        REAL,
    held        INTEGER NOT NULL DEFAULT 0, -- by its owner
    request     TEXT NOT NULL       -- JSON, as it was accepted
);
INSERT INTO "job" VALUES(1,1000,'ada','completed','be','COMPLETED',NULL,1,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0]}]',0,0,0,0,1749999989398877601,1749999989469985592,1749999992482380350,71036908,3012394758,3.0,3.0,NULL,0.6,0,'{"name":"completed","pattern":"step ([0-9]+) loss ([0-9.]+)","steps":3.0,"script":"#!/bin/sh\nfor i in 1 2 3; do echo step $i loss 0.$((9-i)); sleep 1; done\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(2,1000,'ada','failed','be','FAILED','exit status 3',1,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0]}]',1,0,1,3,1749999992553189320,1749999992565908165,1749999992594639598,25824272,15580791,0.0,NULL,NULL,NULL,0,'{"name":"failed","retries":1,"script":"#!/bin/sh\nexit 3\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(3,1000,'ada','cancelled','be','CANCELLED','cancelled',1,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0]}]',0,0,0,143,1749999992666409513,1749999992695405908,1749999992803607528,28929941,108201620,0.106524239,NULL,NULL,NULL,0,'{"name":"cancelled","script":"#!/bin/sh\nsleep 1000\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(4,1000,'ada','rejected','be','REJECTED','asks for 99 accelerators; no type has so many in a shape that fits',99,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999992907097910,NULL,1749999992907097910,0,0,NULL,NULL,NULL,NULL,0,'{"name":"rejected","script":"#!/bin/sh\ntrue\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":99,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(5,1000,'ada','preempted','be','PENDING',NULL,2,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0,1]}]',1,2,0,NULL,1749999992922067168,1749999992959842993,NULL,1089664113,8941465580,4.493412323,NULL,NULL,0.86,0,'{"name":"preempted","grace_s":5.0,"pause_s":1.0,"pattern":"step ([0-9]+) loss ([0-9.]+)","script":"#!/bin/sh\ntrap ''exit 85'' TERM; while :; do i=$((i+1)); echo \"step $i loss 0.$((90-i))\"; sleep 0.5; done\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(6,1000,'ada','running','be','RUNNING',NULL,2,NULL,'vision',NULL,NULL,'[{"node":"node","type":"v100","gpus":[2,3]}]',0,0,0,NULL,1749999993050027090,1749999993077853993,NULL,27759807,12032465406,12.0,1000.0,1.99244337,0.78,0,'{"name":"running","grace_s":3600.0,"entity":"vision","weight":2.0,"steps":1000.0,"pattern":"step ([0-9]+) loss ([0-9.]+)","script":"#!/bin/sh\nwhile :; do i=$((i+1)); echo \"step $i loss 0.$((90-i))\"; sleep 0.5; done\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(7,1000,'ada','array','be','COMPLETED',NULL,0,NULL,NULL,7,0,'[{"node":"node","type":"v100","gpus":[]}]',0,0,0,0,1749999993186035174,1749999993218825057,1749999993221728289,32717046,0,0.012154982,NULL,NULL,NULL,0,'{"name":"array","script":"#!/bin/sh\n[ $BERTH_ARRAY_TASK_ID = 0 ] || sleep 1000\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"mem_bytes":1048576,"cwd":"/tmp/berth-state","array_index":0,"array_limit":1}');
INSERT INTO "job" VALUES(8,1000,'ada','array','be','RUNNING',NULL,0,NULL,NULL,7,1,'[{"node":"node","type":"v100","gpus":[]}]',0,0,0,NULL,1749999993186108261,1749999993247523174,NULL,61409693,0,0.0,NULL,1.0,NULL,0,'{"name":"array","script":"#!/bin/sh\n[ $BERTH_ARRAY_TASK_ID = 0 ] || sleep 1000\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"mem_bytes":1048576,"cwd":"/tmp/berth-state","array_index":1,"array_limit":1}');
INSERT INTO "job" VALUES(9,1000,'ada','array','be','HELD',NULL,0,NULL,NULL,7,2,NULL,NULL,0,0,NULL,1749999993186113521,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"array","script":"#!/bin/sh\n[ $BERTH_ARRAY_TASK_ID = 0 ] || sleep 1000\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"mem_bytes":1048576,"cwd":"/tmp/berth-state","array_index":2,"array_limit":1}');
INSERT INTO "job" VALUES(10,1000,'ada','dependent','be','HELD',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999993314609332,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"dependent","dependency":[{"kind":"afterok","id":8}],"script":"#!/bin/sh\ntrue\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"mem_bytes":1048576,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(11,1000,'ada','trial-ended','te','COMPLETED',NULL,2,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0,1]}]',0,0,0,0,1749999995329280188,1749999995371262010,1749999996378052718,41899338,2013581416,1.019120193,NULL,NULL,NULL,0,'{"name":"trial-ended","class":"te","script":"#!/bin/sh\nsleep 1\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(12,1000,'ada','trial','te','RUNNING',NULL,2,NULL,NULL,NULL,NULL,'[{"node":"node","type":"v100","gpus":[0,1]}]',0,0,0,NULL,1749999998462196910,1749999998505869225,NULL,43598096,0,0.0,NULL,1.0,NULL,0,'{"name":"trial","class":"te","script":"#!/bin/sh\nsleep 1000\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":2,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(13,1000,'ada','waiting','be','PENDING',NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999998583483276,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"waiting","min_gpus":2,"deadline":1930062600.0,"time_limit_s":7200.0,"script":"#!/bin/sh\ntrue\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":4,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(14,1000,'ada','held','be','HELD',NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999998604864492,NULL,NULL,0,0,0.0,NULL,NULL,NULL,1,'{"name":"held","hold":true,"script":"#!/bin/sh\ntrue\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"gpus":1,"cwd":"/tmp/berth-state"}');
INSERT INTO "job" VALUES(15,1000,'ada','later','be','HELD',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,1749999998608385739,NULL,NULL,0,0,0.0,NULL,NULL,NULL,0,'{"name":"later","begin":1930062600.0,"script":"#!/bin/sh\ntrue\n","env":{"PATH":"/usr/bin:/bin","HOME":"/tmp/berth-state"},"mem_bytes":1048576,"cwd":"/tmp/berth-state"}');
CREATE TABLE ledger (
    at_ns       INTEGER NOT NULL,
    victim      INTEGER NOT NULL,
    number      INTEGER NOT NULL,   -- of the victim's preemptions: 1, 2, …
    newcomer    INTEGER,
    rule        TEXT NOT NULL,
    gpus        INTEGER NOT NULL,
    predicted_cost_ns INTEGER NOT NULL,
    predicted_wait_ns INTEGER NOT NULL,
    pause_ns    INTEGER NOT NULL DEFAULT 0,
    load_ns     INTEGER NOT NULL DEFAULT 0,
    redo_ns     INTEGER NOT NULL DEFAULT 0,
    steps       REAL NOT NULL,
    rate_per_s  REAL NOT NULL,
    started_ns  INTEGER,            -- of the newcomer
    shared_by   INTEGER NOT NULL DEFAULT 1,
    wait_saved_s REAL,              -- known when the victim has ended
    open        INTEGER NOT NULL,   -- 2: the victim has still to load again
    PRIMARY KEY (victim, number)
) WITHOUT ROWID;
INSERT INTO "ledger" VALUES(1749999995329362672,5,1,11,'trial',2,2000000000,0,33166550,1992574056,0,2.390595304,1.0,1749999995371262010,1,NULL,1);
INSERT INTO "ledger" VALUES(1749999998462271129,5,2,12,'trial',2,2000000000,0,40510436,0,0,4.473297507,1.0,1749999998505869225,1,NULL,2);
CREATE TABLE live (
    id          INTEGER PRIMARY KEY REFERENCES job (id),
    phase       TEXT NOT NULL,
    class       TEXT NOT NULL,
    attempt     INTEGER NOT NULL,   -- -1: never started
    leaving     INTEGER NOT NULL,
    steps       REAL NOT NULL,
    steps_total REAL NOT NULL,
    step_s      REAL NOT NULL,
    rate_per_s  REAL NOT NULL,
    anchor_ns   INTEGER NOT NULL,
    loss        REAL,
    since_ns    INTEGER NOT NULL,
    first_start_ns INTEGER NOT NULL,
    waited_ns   INTEGER NOT NULL,
    served_ns   INTEGER NOT NULL,
    recalled_ns INTEGER NOT NULL,
    preemptions INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    pause_ns    INTEGER NOT NULL,
    load_ns     INTEGER NOT NULL,
    grace_ns    INTEGER NOT NULL,
    weight      REAL NOT NULL,
    deadline_ns INTEGER NOT NULL,
    level       INTEGER NOT NULL,
    steps_max   INTEGER NOT NULL,
    spread      INTEGER NOT NULL,
    beside      INTEGER,            -- shares the accelerators of this job
    next_beside INTEGER,            -- will share those of this job
    seats       TEXT,               -- node:gpus:cpu:mem …, gpus as bits
    next        TEXT,               -- promised seats
    promises    TEXT,               -- victim:node:gpus:cpu:mem …
    served      TEXT                -- GPU-time by type, type:ns …
);
INSERT INTO "live" VALUES(5,'waiting','be',1,0,4.493412323,0.0,1.0,0.0,1749999998482526347,0.86,1749999998482526347,1749999992959842993,1089664113,8941465580,1749999998462271129,2,0,1000000000,0,5000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,'v100:8941465580');
INSERT INTO "live" VALUES(6,'running','be',0,0,12.0,1000.0,5.01896322403381667243e-01,1.99244337,1749999999094086696,0.78,1749999993077853993,1749999993077853993,27759807,0,0,0,0,0,0,3600000000000,2.0,0,0,0,0,NULL,NULL,'0:c:0:0',NULL,NULL,NULL);
INSERT INTO "live" VALUES(8,'running','be',0,0,0.0,0.0,1.0,1.0,1749999993247523174,NULL,1749999993247523174,1749999993247523174,61409693,0,0,0,0,0,0,60000000000,1.0,0,0,0,1,NULL,NULL,'0:0:1000:1',NULL,NULL,NULL);
INSERT INTO "live" VALUES(9,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999993186117598,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(10,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999993314656320,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(12,'running','te',0,0,0.0,0.0,1.0,1.0,1749999998505869225,NULL,1749999998505869225,1749999998505869225,43598096,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,'0:3:0:0',NULL,NULL,NULL);
INSERT INTO "live" VALUES(13,'waiting','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999998583571630,-1,0,0,0,0,0,0,0,60000000000,1.0,1930062600000000000,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(14,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999998604934714,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "live" VALUES(15,'held','be',-1,0,0.0,0.0,1.0,0.0,0,NULL,1749999998608437566,-1,0,0,0,0,0,0,0,60000000000,1.0,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE INDEX event_by_job ON event (job, seq) WHERE job IS NOT NULL;
CREATE INDEX event_progress ON event (at_ns) WHERE kind = 'progress';
CREATE INDEX job_live ON job (id) WHERE end_ns IS NULL;
CREATE INDEX job_by_submit ON job (submit_ns);
CREATE INDEX job_by_array ON job (array_id) WHERE array_id IS NOT NULL;
CREATE INDEX ledger_open ON ledger (victim) WHERE open;
COMMIT;
