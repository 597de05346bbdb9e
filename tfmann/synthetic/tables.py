"""The words of the two languages of the synthetic corpus, as tables a person can read.

The source language is invented and spells its word classes: nouns end in -a, verbs in -ir (or are
a word in -o and the light verb ``far``), adjectives in -e, numerals in -u, time adverbs in -i and
manner adverbs in -em. The target language is plain English in a strictly regular order.

Two phenomena can be read off the tables: a source noun that stands in two topics is ambiguous
(``riva``: shore by the river, bank at the market), and an entry whose sides differ in their number
of words is fertility (``doma liba``: library; ``tesa``: cup of tea).
"""

from __future__ import annotations

TOPICS = ("river", "market", "kitchen", "music")
TENSES = ("past", "present", "future")

# source | singular / plural; one block for each kind and topic ("-": any topic)
NOUNS = {
    "person -": """
        mara | woman / women
        tola | man / men
        pika | child / children
        suna | girl / girls
        bora | boy / boys
        leda | teacher / teachers
        farna | farmer / farmers
        nelga | neighbour / neighbours
        rega | king / kings
        gosta | guest / guests""",
    "person river": """
        nafta | sailor / sailors
        peska | fisher / fishers
        kapta | captain / captains""",
    "person market": """
        merka | merchant / merchants
        zolda | street seller / street sellers
        shefa | owner / owners""",
    "person kitchen": """
        panera | baker / bakers
        servila | waiter / waiters
        shefa | chef / chefs""",
    "person music": """
        kantora | singer / singers
        balda | drummer / drummers
        kapta | conductor / conductors""",
    "animal -": """
        hunda | dog / dogs
        misha | cat / cats
        kavala | horse / horses
        birda | bird / birds""",
    "animal river": """
        anata | duck / ducks
        signa | swan / swans""",
    "thing -": """
        kesta | box / boxes
        klava | key / keys
        chapa | hat / hats
        luma | lamp / lamps
        sedila | chair / chairs
        petra | stone / stones
        anela | ring / rings
        manta | rain coat / rain coats
        anela hunda | collar / collars
        kesta liba | bookcase / bookcases
        chapa rega | crown / crowns""",
    "thing river": """
        barka | boat / boats
        reta | net / nets
        kanza | fishing rod / fishing rods
        pala | oar / oars
        korda | rope / ropes
        tela | sail / sails""",
    "thing market": """
        moneta | coin / coins
        korba | basket / baskets
        katena | silver chain / silver chains
        tela | cloth / cloths""",
    "thing kitchen": """
        plata | plate / plates
        frita | frying pan / frying pans
        pala | spoon / spoons
        tamba | pot / pots""",
    "thing music": """
        flauta | flute / flutes
        arpa | harp / harps
        viola | fiddle / fiddles
        korda | string / strings
        tamba | drum / drums""",
    "text -": """
        liba | book / books
        skripa | letter / letters
        karta | map / maps
        rakona | story / stories""",
    "text market": """
        pakta | contract / contracts
        folia | bill / bills
        rola | scroll / scrolls""",
    "text music": """
        kanta | song / songs
        valsa | waltz / waltzes
        serena | love song / love songs
        folia | score / scores""",
    "food -": """
        poma | apple / apples
        ova | egg / eggs
        pira | pear / pears
        melona | melon / melons""",
    "food river": """
        kraba | crab / crabs
        angila | eel / eels""",
    "food market": """
        figa | fig / figs
        risaka | sack of rice / sacks of rice""",
    "food kitchen": """
        pana | loaf / loaves
        torta | cake / cakes
        sepa | onion / onions
        angila | noodle / noodles
        rola | bun / buns""",
    "drink -": """
        tesa | cup of tea / cups of tea
        akva | glass of water / glasses of water""",
    "drink kitchen": """
        lakta | glass of milk / glasses of milk
        supa | bowl of soup / bowls of soup""",
    "place -": """
        doma | house / houses
        skola | school / schools
        horta | garden / gardens
        ponta | bridge / bridges
        tura | tower / towers
        doma liba | library / libraries""",
    "place river": """
        porta | harbour / harbours
        isla | island / islands
        riva | shore / shores
        tura luma | lighthouse / lighthouses""",
    "place market": """
        butika | shop / shops
        plassa | market square / market squares
        riva | bank / banks
        kabana | stall / stalls
        doma moneta | mint / mints""",
    "place kitchen": """
        kusina | kitchen / kitchens
        salona | dining room / dining rooms
        kabana | pantry / pantries
        tribna | counter / counters
        doma pana | bakery / bakeries""",
    "place music": """
        teatra | theatre / theatres
        auda | concert hall / concert halls
        tribna | stage / stages
        doma kanta | opera / operas""",
}

# source | base third past [rest] | kinds of object, with a star: of the verb's own topic only
TRANSITIVE = {
    "-": """
        vidir | see sees saw | person animal thing text food place
        amir | like likes liked | person animal thing text food place
        portir | carry carries carried | thing text food drink
        celir | hide hides hid | thing text food drink
        komprir | buy buys bought | thing text food drink animal
        pentir | paint paints painted | person animal thing place
        helpir | help helps helped | person animal
        salutir | greet greets greeted | person
        sekvir | follow follows followed | person animal
        lavir | wash washes washed | thing animal
        studir | study studies studied | text
        skribir | write writes wrote | text
        manjir | eat eats ate | food
        serchir | look looks looked for | person animal thing text food
        levir | pick picks picked up | thing text food
        jetir | throw throws threw away | thing text food
        redir | give gives gave back | thing text
        esperir | wait waits waited for | person animal
        kurir | take takes took care of | person animal
        perdir | get gets got rid of | thing text food animal
        kiso far | kiss kisses kissed | person animal
        danko far | thank thanks thanked | person
        ripo far | repair repairs repaired | thing""",
    "river": """
        kaptir | catch catches caught | food* animal*
        halir | haul hauls hauled | thing*
        savir | rescue rescues rescued | person animal
        peskir | fish fishes fished out | thing*""",
    "market": """
        pagir | pay pays paid | person
        pesir | weigh weighs weighed | thing* food*
        signir | sign signs signed | text*
        negoko far | sell sells sold | thing text food""",
    "kitchen": """
        kozir | bake bakes baked | food*
        gustir | taste tastes tasted | food* drink
        skubir | scrub scrubs scrubbed | thing*
        trinkir | drink drinks drank up | drink""",
    "music": """
        ludir | play plays played | text*
        tonir | tune tunes tuned | thing*
        lernir | learn learns learned by heart | text*
        aplodo far | applaud applauds applauded | person""",
}

GIVING = {
    "-": """
        donir | give gives gave | thing text food drink animal
        montrir | show shows showed | thing text food drink animal
        porto far | bring brings brought | thing text food drink
        prestir | lend lends lent | thing text animal
        pasir | hand hands handed over | thing text food drink"""
}

STAYING = {
    "-": """
        dormir | sleep sleeps slept | person animal
        ridir | laugh laughs laughed | person
        standir | stand stands stood | person animal
        sedir | sit sits sat down | person animal
        vekir | wake wakes woke up | person animal
        laborir | work works worked | person""",
    "river": """
        naxir | swim swims swam | person animal""",
    "market": """
        haglir | haggle haggles haggled | person""",
    "kitchen": """
        kukir | cook cooks cooked | person""",
    "music": """
        kantir | sing sings sang | person animal
        danso far | dance dances danced | person""",
}

NUMBERING = {
    "-": """
        skribir | write writes wrote | numbers
        dirir | say says said | numbers
        nombir | count counts counted | numbers
        vokir | call calls called out | numbers"""
}

ADJECTIVES = """
    olde | old | person animal thing text place
    june | young | person animal
    alte | tall | person
    bone | kind | person
    sage | wise | person
    fele | happy | person animal
    lase | tired | person animal
    gande | big | animal thing place food
    pite | little | animal thing place food
    nove | new | thing text place
    pese | heavy | thing
    bele | beautiful | thing text place animal
    lunge | long | text
    sekre | secret | text
    freske | fresh | food
    dulce | sweet | food drink
    varme | warm | food drink
    frige | cold | food drink
    silente | quiet | person place"""

COLOURS = {
    "ruge": "red",
    "blave": "blue",
    "verde": "green",
    "albe": "white",
    "nigre": "black",
    "flave": "yellow",
}
NUMERALS = {
    "doru": "two",
    "triku": "three",
    "fapu": "four",
    "pentu": "five",
    "seksu": "six",
    "septu": "seven",
    "oktu": "eight",
    "nonu": "nine",
}
DETERMINERS = {"isi": "this", "ili": "that", "omni": "every"}
POSTPOSITIONS = {"ad": "at", "pru": "near", "dop": "behind", "ant": "in front of"}
CONNECTIVES = {"pos": "then", "sed": "but", "dun": "so", "anko": "also"}
MANNERS = {"lentem": "slowly", "rapidem": "quickly", "gladem": "gladly", "silem": "in silence"}
TIMES = {
    "past": {"hieri": "yesterday", "nokti": "last night", "olimi": "long ago"},
    "present": {"nuni": "now", "odi": "today", "momi": "right now"},
    "future": {"mani": "tomorrow", "bali": "soon", "semi": "next week"},
}
TENSE_PARTICLES = {"past": "ta", "present": "ni", "future": "ru"}
AND, NOT, TO, STOP, NUMBERS = "ve", "nu", "al", ".", "nomra"
# In long sentences only: between clauses, and behind an object, whose place is free.
CONJUNCTIONS = {"zan": "and then", "vel": "while", "kar": "because", "lon": "although"}
OBJECT = "em"

# Most frequent first; a copied name and one that changes its spelling take turns.
NAMES = """
    Adelo Ajla Bamira Xira Belan Kadel Cirelo Wanda Dalmo Boxan Dorena Jorin Edrin Kemal Elmara
    Lexo Fenor Mikar Galdo Najo Gorim Okran Hela Pexil Ilmar Rajko Irena Sukel Lanor Tajin Lirel
    Ukrel Medano Wilno Mirela Xandor Nadir Zajna Nolan Ziko Orban Darkel Osmina Exmir Palen Fajro
    Perila Gekon Radan Hajdar Rinela Ikaro Sorin Jelmo Tamela Kirto Ulman Lukan Valdo Maxen"""
