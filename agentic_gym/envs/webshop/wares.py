"""The vocabulary of the generated shop: departments, kinds of products, and the words that describe them.

A star marks the nouns of a phrase, so that the generator knows the nouns of every title it composes.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AWKWARD_VALUES", "DEPARTMENTS", "OPTION_VALUES", "Department", "Kind", "nouns", "plain"]


def plain(phrase: str) -> str:
    """A phrase without its marks.

    >>> plain("long *sleeve"), nouns("long *sleeve")
    ('long sleeve', ['sleeve'])
    """
    return phrase.replace("*", "")


def nouns(phrase: str) -> list[str]:
    """The marked words of a phrase, in lower case."""
    return [word[1:].strip(",").lower() for word in phrase.split() if word.startswith("*")]


@dataclass(frozen=True)
class Kind:
    """A kind of product: what a customer would search for."""

    query: str
    """Plural, as the shop's ``query`` field has it."""
    path: str
    """The steps of ``product_category`` below the department, separated by " > "."""
    head: str
    """What a title calls one of them."""
    dollars: float
    """Median price."""
    options: str
    """Names of its option groups in `OPTION_VALUES`, separated by blanks."""


@dataclass(frozen=True)
class Department:
    """A department of the shop: one ``category``."""

    category: str
    path: str
    share: int
    """Percent of the products."""
    adjectives: tuple[str, ...]
    attributes: tuple[str, ...]
    purposes: tuple[str, ...]
    flavours: tuple[str, ...]
    """Words that split a kind into narrower ones in large shops."""
    kinds: tuple[Kind, ...]


def _split(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def _kinds(table: str) -> tuple[Kind, ...]:
    kinds = []
    for line in table.strip().splitlines():
        query, path, head, dollars, options = (cell.strip() for cell in line.split("|"))
        kinds.append(Kind(query, path, head, float(dollars), options))
    return tuple(kinds)


_FASHION = Department(
    "fashion",
    "Clothing, Shoes & Jewelry",
    20,
    _split("Casual, Classic, Relaxed, Elegant, Vintage, Lightweight, Stylish, Cozy, Everyday, Slim, Basic, Oversized"),
    _split("""machine *wash, machine washable, hand *wash, *wash cold, long *sleeve, short *sleeve, slim *fit, loose *fit,
        classic *fit, regular *fit, relaxed *fit, elastic *waist, high *waist, drawstring *closure, button *closure, *zipper closure,
        cotton *spandex, polyester *spandex, cotton *heather, quick drying, moisture wicking, *water resistant, non slip,
        *rubber sole, *memory foam, arch *support, *ankle strap, round *toe, open *toe, faux *fur, *fleece lined, *winter warm,
        tummy *control, wide *leg, *stretch fabric, unique *design, *teen girls, daily *wear, gym *workout, *dry clean, *tumble dry,
        soft *material, v *neck, crew *neck"""),
    _split("for *Travel, for the *Office, for *Summer, for *Winter, for *Hiking, for *Yoga, for *Parties, for the *Weekend, for *Running"),
    _split("petite, tall, maternity, vintage style, striped, floral, two piece, hooded, sleeveless, reversible"),
    _kinds("""
        men's dress shirts | Men > Clothing > Shirts > Dress Shirts | *Dress *Shirt for *Men | 32 | Color Size
        men's hoodies | Men > Clothing > Hoodies & Sweatshirts > Hoodies | *Pullover *Hoodie for *Men | 38 | Color Size
        men's shorts | Men > Clothing > Shorts > Flat Front | *Shorts for *Men with *Pockets | 27 | Color Size
        men's loafers | Men > Shoes > Loafers & Slip-Ons | *Slip-On *Loafers for *Men | 52 | Color Size
        women's sweaters | Women > Clothing > Sweaters > Cardigans | *Knit *Cardigan for *Women | 36 | Color Size
        women's leggings | Women > Clothing > Active > Leggings | *Leggings for *Women | 24 | Color Size
        women's dresses | Women > Clothing > Dresses > Casual | *Sundress for *Women | 34 | Color Size
        women's sandals | Women > Shoes > Sandals > Platforms & Wedges | *Wedge *Sandals for *Women | 41 | Color Size
        women's coats | Women > Clothing > Coats, Jackets & Vests > Trench | *Trench *Coat for *Women | 79 | Color Size
        swimsuits | Women > Clothing > Swimsuits & Cover Ups > One-Pieces | *Swimsuit for *Women | 31 | Color Size
        slippers | Shoe, Jewelry & Watch Accessories > Shoes > Slippers | *House *Slippers | 22 | Color Size
        backpacks | Luggage & Travel Gear > Backpacks > Casual Daypacks | *Canvas *Backpack | 45 | Color Style
        """),
)  # fmt: skip

_BEAUTY = Department(
    "beauty",
    "Beauty & Personal Care",
    24,
    _split("Gentle, Hydrating, Soothing, Professional, Portable, Refreshing, Nourishing, Delicate, Daily, Compact, Premium"),
    _split("""long lasting, easy *apply, easy *carry, easy *use, cruelty free, paraben free, fragrance free, sulfate free, alcohol free,
        oil free, natural *ingredients, essential *oils, coconut *oil, *tea tree, argan *oil, hyaluronic *acid, vitamin *c, dead *skin,
        dry *skin, sensitive *skin, fine *lines, dark *circles, anti *aging, eco friendly, *leak proof, *bpa free, travel *bottles,
        high *quality, nail *polish, nail *art, eye *makeup, hair *growth, hair *loss, damaged *hair, dry *hair, curly *hair,
        natural *hair, heat *resistant, fluoride free, fresh *breath, teeth *whitening, stainless *steel, clinically proven,
        dermatologist tested, *water resistant"""),
    _split("for *Travel, for the *Bathroom, for sensitive *Skin, for *Beginners, for the *Salon, for *Men and *Women, for *Kids"),
    _split("mini, refillable, unscented, overnight, vegan, travel size, deep cleaning, matte, waterproof, herbal"),
    _kinds("""
        face creams | Skin Care > Face > Creams & Moisturizers > Face Moisturizers | *Face *Cream *Moisturizer | 18 | Size Scent
        face masks | Skin Care > Face > Treatments & Masks > Masks | *Sheet *Mask *Set | 14 | Size
        body scrubs | Skin Care > Body > Scrubs & Body Treatments | *Sugar *Body *Scrub | 16 | Size Scent
        lip balms | Makeup > Lips > Lip Care > Balms & Moisturizers | *Lip *Balm *Stick | 9 | Color
        eyeshadow palettes | Makeup > Eyes > Eyeshadow | *Eyeshadow *Palette | 21 | Color
        nail files | Foot, Hand & Nail Care > Nail Art & Polish > Files & Buffers | *Nail *File *Kit | 10 | Color Size
        shampoos | Hair Care > Shampoo & Conditioner > Shampoos | *Shampoo with *Pump | 17 | Size Scent
        hair masks | Hair Care > Hair Masks > Treatments | *Hair *Mask *Treatment | 19 | Size
        wigs | Hair Care > Hair Extensions, Wigs & Accessories > Wigs | *Lace *Front *Wig | 64 | Color Size
        makeup brushes | Tools & Accessories > Makeup Brushes & Tools > Brush Sets | *Makeup *Brush *Set | 20 | Color
        toothbrushes | Oral Care > Toothbrushes & Accessories > Manual Toothbrushes | *Bristle *Toothbrush | 12 | Color Size
        refillable containers | Tools & Accessories > Bags & Cases > Refillable Containers | *Spray *Bottle *Container | 13 | Color Size
        """),
)  # fmt: skip

_ELECTRONICS = Department(
    "electronics",
    "Electronics",
    23,
    _split("Compact, Wireless, Portable, Universal, Digital, Rugged, Slim, Foldable, Advanced, Mini, Heavy Duty, Smart"),
    _split("""high *speed, fast *charging, quick *charge, *plug play, easy *use, easy *install, easy *carry, wireless *bluetooth,
        noise *cancelling, stereo *sound, high *definition, *ultra hd, high *resolution, high *performance, high *power, power *supply,
        light *weight, carrying *case, *water resistant, non slip, tempered *glass, wireless *charging, *gold plated, blue *ray,
        remote *control, *batteries included, long *lasting, heavy *duty, aluminum *alloy, optical *zoom, motion *detection, night *vision,
        dual *band, dust *proof, *shock absorbing, *usb port, output *protection, hands free, compatible *iphone, quad *core,
        *intel core, solid *state, 1080p *hd, 3d *effect"""),
    _split("for the *Car, for the *Office, for *Travel, for *Gaming, for the *Living *Room, for the *Desk, for *Bird *Watching"),
    _split("compact, outdoor, wall mounted, rechargeable, gaming, ergonomic, ultra thin, desktop, vintage look, marine"),
    _kinds("""
        bluetooth speakers | Portable Audio & Video > Portable Speakers > Outdoor Speakers | *Bluetooth *Speaker with *Bass | 39 | Color
        headphones | Headphones > Over-Ear Headphones | *Headphones with *Microphone | 48 | Color Style
        earbuds | Headphones > Earbud Headphones | *Earbuds with *Case | 35 | Color
        phone cases | Accessories & Supplies > Cell Phone Accessories > Cases | *Phone *Case *Cover | 13 | Color Size
        screen protectors | Accessories & Supplies > Cell Phone Accessories > Screen Protectors | *Screen *Protector *Film | 10 | Size
        hdmi cables | Accessories & Supplies > Audio & Video Accessories > Cables | *Video *Cable *Cord | 12 | Size Color
        tripods | Camera & Photo > Accessories > Tripods & Monopods | *Camera *Tripod *Stand | 44 | Color Size
        binoculars | Camera & Photo > Binoculars & Scopes > Binoculars | *Binoculars with *Strap | 72 | Size Style
        security cameras | Camera & Photo > Video Surveillance > Surveillance Cameras | *Security *Camera *System | 85 | Style
        wireless keyboards | Computers & Accessories > Keyboards, Mice & Accessories > Keyboards | *Keyboard with *Trackpad | 37 | Color Style
        tablets | Computers & Accessories > Computers & Tablets > Tablets | *Tablet *Computer | 240 | Color Size
        soundbars | Television & Video > Home Theater > Sound Bars | *Soundbar with *Subwoofer | 310 | Style
        """),
)  # fmt: skip

_GARDEN = Department(
    "garden",
    "Home & Kitchen",
    21,
    _split("Modern, Rustic, Farmhouse, Contemporary, Minimalist, Decorative, Sturdy, Round, Adjustable, Handmade, Industrial"),
    _split("""living *room, dining *room, home *office, storage *space, easy *assemble, easy *clean, easy *install, assembly *required,
        solid *wood, engineered *wood, wood *frame, *steel frame, metal *legs, *space saving, *mid century, heavy *duty, high *density,
        *memory foam, machine *washable, double sided, *super soft, *king size, *queen size, *twin size, button *tufted, faux *leather,
        non slip, *water proof, eco friendly, ready *use, printing *technology, white *item, contemporary *design, clear *glass,
        brushed *nickel, *glass shade, energy *efficient, long *lasting, *box spring, coated *steel, *lead free, dust *proof,
        spot *clean, exquisite *workmanship"""),
    _split("for the *Bedroom, for the *Living *Room, for the *Kitchen, for the *Entryway, for small *Spaces, for the *Patio, for the *Dorm"),
    _split("outdoor, kids, corner, foldable, wall mounted, velvet, bamboo, narrow, antique style, oversized"),
    _kinds("""
        console tables | Furniture > Living Room Furniture > Tables > Sofa & Console Tables | *Console *Table with *Shelf | 169 | Color
        bookcases | Furniture > Home Office Furniture > Bookcases | *Bookcase with *Shelves | 145 | Color Size
        nightstands | Furniture > Bedroom Furniture > Nightstands | *Nightstand with *Drawer | 96 | Color
        accent chairs | Furniture > Living Room Furniture > Chairs | *Accent *Chair with *Armrest | 210 | Color Style
        sofas | Furniture > Living Room Furniture > Sofas & Couches | *Sectional *Sofa *Couch | 890 | Color Size
        decorative pillows | Bedding > Decorative Pillows, Inserts & Covers > Throw Pillow Covers | *Throw *Pillow *Cover | 15 | Color Size
        blankets | Bedding > Blankets & Throws > Throws | *Throw *Blanket | 29 | Color Size
        area rugs | Home Decor Products > Area Rugs, Runners & Pads > Area Rugs | *Area *Rug | 118 | Color Size
        window curtains | Home Decor Products > Window Treatments > Curtains & Drapes | *Curtain *Panels | 33 | Color Size
        table lamps | Lighting & Ceiling Fans > Lamps & Shades > Table Lamps | *Table *Lamp with *Shade | 46 | Color
        storage baskets | Storage & Organization > Baskets, Bins & Containers > Baskets | *Storage *Basket with *Handles | 24 | Color Size
        shower curtains | Bath > Bathroom Accessories > Shower Curtains, Hooks & Liners | *Shower *Curtain *Set | 21 | Color Size
        """),
)  # fmt: skip

_GROCERY = Department(
    "grocery",
    "Grocery & Gourmet Food",
    12,
    _split("Crunchy, Organic, Roasted, Artisan, Premium, Hearty, Classic, Wholesome, Smooth, Bold, Homestyle"),
    _split("""gluten free, dairy free, soy free, nut free, sugar free, low *sugar, low *carb, low *sodium, fat free, non gmo, plant *based,
        *keto friendly, kosher certified, usda organic, certified organic, high *protein, high *fructose, dietary *fiber, whole *grain,
        old *fashioned, artificial *colors, artificial *flavors, natural *flavors, natural *ingredients, quality *ingredients,
        individually wrapped, shelf *stable, ready *eat, freeze dried, caffeine free, protein *serving, *grass fed, wild caught,
        hand crafted, perfect *gift, great *gift, valentine *day, baby *shower, birthday *party, real *fruit"""),
    _split("for the *Pantry, for *Lunch *Boxes, for *Breakfast, for *Hiking, for *Parties, for the *Office, for *Gifts"),
    _split("bulk, mini, spicy, unsalted, vegan, single serve, holiday, smoky, dark roast, sour"),
    _kinds("""
        granola bars | Snack Foods > Bars > Granola & Trail Mix Bars | *Granola *Bars | 16 | Flavor+Name Size
        protein bars | Snack Foods > Bars > Nutrition Bars | *Protein *Bars | 24 | Flavor+Name Size
        tea samplers | Beverages > Bottled Beverages, Water & Drink Mixes > Tea Samplers | *Tea *Bags *Sampler | 15 | Flavor+Name Size
        ground coffees | Beverages > Coffee, Tea & Cocoa > Ground Coffee | *Ground *Coffee | 18 | Flavor+Name Size
        popcorns | Snack Foods > Popcorn > Popped | *Popcorn *Snack | 14 | Flavor+Name Size
        jerky | Snack Foods > Meat Snacks > Jerky | *Turkey *Jerky *Strips | 26 | Flavor+Name Size
        chocolate candies | Candy & Chocolate > Candy & Chocolate Assortments | *Chocolate *Truffles *Box | 23 | Flavor+Name Size
        gummies | Candy & Chocolate > Gummy Candies | *Fruit *Gummies | 12 | Flavor+Name Size
        hot sauces | Pantry Staples > Sauces, Gravies & Marinades > Hot Sauce | *Pepper *Sauce *Bottle | 11 | Flavor+Name Size
        breakfast cereals | Breakfast Foods > Cereals > Cold Cereals | *Breakfast *Cereal | 13 | Flavor+Name Size
        nut butters | Pantry Staples > Nut & Seed Butters > Almond Butter | *Almond *Butter *Jar | 15 | Flavor+Name Size
        crackers | Snack Foods > Crackers > Assortments | *Seed *Crackers | 10 | Flavor+Name Size
        """),
)  # fmt: skip

DEPARTMENTS = (_BEAUTY, _ELECTRONICS, _GARDEN, _FASHION, _GROCERY)

_COLOURS = _split("""Black, White, Navy, Dark Blue, Light Blue, Royal Blue, Grey, Dark Grey, Charcoal, Beige, Khaki, Olive, Army Green,
    Light Green, Wine, Burgundy, Pink, Light Pink, Purple, Lavender, Yellow, Orange, Coffee, Brown, Black/White, White/Black, Navy/Grey,
    Grey/Yellow, Blue/Green/White, Black-A, A-Black, B-Navy, Rose Gold, Gold, Silver, Teal, Turquoise, MULTI 1, MULTI 2, 2-Pack Black""")

OPTION_VALUES: dict[str, dict[str, tuple[tuple[str, ...], ...]]] = {
    "fashion": {
        "Color": (_COLOURS,),
        "Size": (
            _split("X-Small, Small, Medium, Large, X-Large, XX-Large, 3X-Large, 4X-Large, 5X-Large"),
            _split("Small, Medium, Large, X-Large, Large Tall, X-Large Tall, 2X-Large Tall"),
            _split("6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 10.5, 11, 12, 13"),
            _split("Small/Medium, Medium/Large, X-Large/XX-Large"),
        ),
        "Style": (_split("with Chest Strap, without Chest Strap, with Rain Cover"), _split("15 Inch, 15.6 Inch, 17 Inch")),
        "Fit Type": (_split("Men, Women, Youth"), _split("Regular, Big & Tall")),
    },
    "beauty": {
        "Color": (_COLOURS, _split("01, 02, 03, 04, 05, 10"), _split("Nude, Peach, Coral, Mauve, Plum, Merlot")),
        "Size": (
            _split("1 Ounce, 1 Ounce (Pack of 2), 2 Ounce, 2 Ounce (Pack of 2), 3.4 Ounce, 8 Fl Oz, 16 Fl Oz (Pack of 3)"),
            _split("10 Pcs, 20 Pcs, 50 Pcs, 100 Pcs, 120 Pcs"),
            _split("12 Inch, 14 Inch, 16 Inch, 18 Inch, 20 Inch, 22 Inch"),
        ),
        "Scent": (_split("Unscented, Lavender, Vanilla, Coconut, Tea Tree, Citrus, Lemon, Rose, Vanilla & Coconut, Fresh Linen"),),
        "Style": (_split("Starter Kit, Refill, Full Kit"),),
    },
    "electronics": {
        "Color": (_COLOURS,),
        "Size": (
            _split("3 ft, 6 ft, 10 ft, 15 ft, 25 ft, 3 ft (2 Pack), 6 ft (2 Pack)"),
            _split("8x21, 8x42, 10x42, 12x50, 20x50"),
            _split("32 GB, 64 GB, 128 GB, 256 GB, 512 GB"),
            _split('50", 60", 67", 72"'),
        ),
        "Style": (_split("Basic, Pro, Pro + Case, 2 Pack, 4 Pack"), _split("Corded, Cordless, Cordless + Dock")),
    },
    "garden": {
        "Color": (_COLOURS, _split("Walnut, Espresso, Natural, White/Natural, Grey Oak, Dark Walnut")),
        "Size": (
            _split('16" x 16", 18" x 18", 20" x 20", 24" x 24", 28" x 28", 12" x 20"'),
            _split("2 ft x 3 ft, 3 ft x 5 ft, 5 ft x 7 ft, 7 ft 9 in x 10 ft 8 in, 8 ft x 10 ft, 2 ft 6 in x 8 ft"),
            _split("Twin, Twin XL, Full, Queen, King, California King"),
            _split("3-Tier, 4-Tier, 5-Tier, 6-Tier"),
            _split('52"W x 63"L, 52"W x 84"L, 42"W x 84"L'),
        ),
        "Style": (_split("Single Chair, Set of 2, Chair + Ottoman"), _split("Left Facing, Right Facing")),
    },
    "grocery": {
        "Flavor Name": (
            _split("""Vanilla, Chocolate, Dark Chocolate, Chocolate Chip, Peanut Butter, Peanut Butter Chocolate, Apple, Cinnamon, Apple Cinnamon,
                Mixed Berry, Sea Salt, Sea Salt & Vinegar, Honey, Honey Almond, Original, Teriyaki, Hot & Spicy, Variety Pack"""),
        ),
        "Size": (
            _split("1 Count (Pack of 1), 6 Count (Pack of 1), 12 Count (Pack of 1), 12 Count (Pack of 2), 24 Count (Pack of 1)"),
            _split("0.8 Ounce (Pack of 20), 8 Ounce (Pack of 1), 8 Ounce (Pack of 6), 1 Pound (Pack of 1), 1.5 Pound (Pack of 2)"),
        ),
        "Style": (_split("Gift Box, Pouch, 1/2 Case"),),
    },
}  # fmt: skip
"""Department -> option group -> families of values, one of which a product takes its values from."""

AWKWARD_VALUES = _split("Standard, Stone Washed, Textured, One Size, Peppermint, Sandalwood, Titanium, Wired, Description")
"""Values that the shop's rules trip over (a colour inside a word, a button's name); never in a synthetic goal."""
